"""`halldetect audit --jsonl`: many records through shared batches, one answer a line, in order."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cli.consoles import messages_console, results_console
from cli.jsonl_output import InputLine, ResultsFile, ResultsStream, check_answers_line
from cli.jsonl_summary import Tally
from cli.pace import Pace
from cli.progress_display import ProgressDisplay, progress_display
from cli.result_json import object_line, trail_line
from cli.text_input import STANDARD_INPUT, display_name, unreadable
from halldetect.auditor import Auditor, Progress
from halldetect.errors import InputError
from halldetect.record import Record, jsonl_lines, parse_record, text_fault
from halldetect.scoring.policy import BUILTIN_POLICIES
from halldetect.settings import Settings
from halldetect.trail import AuditResult, Status
from halldetect.wording import counted

_EXIT_DONE, _EXIT_FLAGGED, _EXIT_FAILED = 0, 1, 2
_FAILURES_TOLD = 10  # the rest is in the results
_SUMMARISED = {"status", "outcome", "label", "fedscore", "counts"}


def audit_jsonl(source: str, out: str, settings: Settings, *, fail_on_hallucinated: bool) -> int:
    """Audit every line of a file and write one answer a line.

    Parameters
    ----------
    source : str
        JSONL file; ``-`` for standard input.
    out : str
        Results file, continued if an earlier run left it; ``-`` for standard output.
    settings : Settings
        Models and policy.
    fail_on_hallucinated : bool
        Tell by the exit code whether any response was flagged.

    Returns
    -------
    int
        2 if any line failed, else 1 if asked to tell and any was flagged, else 0.

    Raises
    ------
    InputError
        When a file cannot be used, or the results belong to another input or other settings.
    ModelError
        When a model is missing or broken.
    """
    from halldetect.model_loading import load_auditor

    _refuse_same_file(source, out)
    with _opened(source) as file, _results(out) as results, progress_display() as display:
        display.show("loading the models", None)
        batch = _Batch(source, out, results, display)
        batch.run(file, load_auditor(settings, batch.note))
    console = messages_console() if out == STANDARD_INPUT else results_console()
    console.print(batch.tally.table(kept=batch.kept, seconds=batch.seconds))
    if batch.tally.failed:
        return _EXIT_FAILED
    flagged = fail_on_hallucinated and batch.tally.hallucinated > 0
    return _EXIT_FLAGGED if flagged else _EXIT_DONE


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a line is no record, and its name if that can be read."""

    custom_id: str | None
    error: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A line whose answer has not been written."""

    line: InputLine
    fault: _Fault | None


class _Batch:
    """One run over one input."""

    def __init__(
        self,
        source: str,
        out: str,
        results: ResultsFile | ResultsStream,
        display: ProgressDisplay,
    ) -> None:
        self.tally = Tally()
        self.kept = 0
        self.seconds = 0.0
        self._source = display_name(source)
        self._out = out
        self._results = results
        self._display = display
        self._pace = Pace(_count_lines(source))
        self._waiting: deque[_Waiting] = deque()
        self._line_of_id: dict[str, int] = {}
        self._settings_sha256 = ""
        self._failures = 0

    def note(self, progress: Progress) -> None:
        """Take in and show what the auditor reports."""
        self._pace.note(progress)
        self._display.show(str(self._pace), self._pace.fraction)

    def run(self, file: BinaryIO, auditor: Auditor) -> None:
        """Answer every line of `file`."""
        self._settings_sha256 = settings_digest(auditor)
        self._pace.restart()
        started = time.monotonic()
        try:
            for result in auditor.audit_many(self._records(file)):
                self._write_result(result)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._how_to_go_on()) from None
        self.seconds = time.monotonic() - started

    def _records(self, file: BinaryIO) -> Iterator[Record]:
        """Yield the records that are still to be audited, in order."""
        lines = (InputLine(*numbered) for numbered in jsonl_lines(file))
        for line in lines:
            waiting, record = self._parsed(line)
            if self._keep_answer(line):
                continue
            self._waiting.append(waiting)
            if record is not None:
                yield record
            else:
                self._write_errors()
        if self._results.next_kept() is not None:
            raise InputError(
                f"{self._out}: has answers to more lines than the input has, so it belongs to "
                "another input; choose another --out, or delete it"
            )

    def _parsed(self, line: InputLine) -> tuple[_Waiting, Record | None]:
        try:
            record = parse_record(line.content)
            self._refuse_repeated(record.custom_id, line.number)
        except InputError as error:
            return _Waiting(line, _Fault(_readable_id(line.content), str(error))), None
        return _Waiting(line, None), record

    def _refuse_repeated(self, custom_id: str | None, line: int) -> None:
        if custom_id is not None:
            first = self._line_of_id.setdefault(custom_id, line)
            if first != line:
                raise InputError(f"custom_id {custom_id!r} was already given in line {first}")

    def _keep_answer(self, line: InputLine) -> bool:
        answer = self._results.next_kept()
        if answer is None:
            return False
        try:
            check_answers_line(answer, line, self._settings_sha256, self._out)
            self.tally.add(answer)
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{self._out}: its answer to line {line.number} is damaged: it is no result of "
                "`halldetect audit --jsonl`; choose another --out"
            ) from None
        self.kept += 1
        self._pace.skipped()
        return True

    def _write_result(self, result: AuditResult) -> None:
        self._write_errors()
        line = self._waiting.popleft().line
        leading = {**line.identity(), "settings_sha256": self._settings_sha256}
        self._results.append(trail_line(leading, result))
        self.tally.add(result.model_dump(mode="json", include=_SUMMARISED))
        if result.error is not None:
            self._tell_failure(line.number, result.error)
        self._pace.wrote()
        self._write_errors()

    def _write_errors(self) -> None:
        """Write the error lines that no audit before them holds back."""
        while self._waiting and (fault := self._waiting[0].fault) is not None:
            line = self._waiting.popleft().line
            answer = {
                **line.identity(),
                "custom_id": fault.custom_id,
                "status": Status.FAILED.value,
                "error": fault.error,
            }
            self._results.append(object_line(answer))
            self.tally.add(answer)
            self._pace.skipped()
            self._tell_failure(line.number, fault.error)

    def _tell_failure(self, line: int, error: str) -> None:
        self._failures += 1
        if self._failures <= _FAILURES_TOLD:
            self._display.say(f"{self._source} line {line}: {error}")
        elif self._failures == _FAILURES_TOLD + 1:
            self._display.say("more lines failed; the results say which and why")

    def _how_to_go_on(self) -> str:
        lines = counted(self.tally.audits, "line")
        if self._out == STANDARD_INPUT:
            return f"interrupted after {lines}"
        return f"interrupted after {lines}; the same command again goes on from there"


def settings_digest(auditor: Auditor) -> str:
    """Return a digest of everything that answers depend on besides the record."""
    options = auditor.options
    content = {
        "policy": [auditor.policy.name, auditor.policy.version],
        "named_policies": {name: policy.version for name, policy in BUILTIN_POLICIES.items()},
        "extractor": auditor.extractor.provenance.to_json(),
        "nli": auditor.nli.provenance.to_json(),
        "mode": options.mode.value,
        "preselected_spans": options.preselected_spans,
        "limits": [options.max_characters, options.max_sentences],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _readable_id(line: bytes) -> str | None:
    """Return the custom_id of a line that is no valid record, if it can be made out."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    custom_id = value.get("custom_id", value.get("id")) if isinstance(value, dict) else None
    return custom_id if isinstance(custom_id, str) and text_fault(custom_id) is None else None


def _refuse_same_file(source: str, out: str) -> None:
    if STANDARD_INPUT in (source, out) or not (Path(source).exists() and Path(out).exists()):
        return
    if Path(out).samefile(source):
        raise InputError(f"{out}: --out is the input itself; choose another file")


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise unreadable(display_name(source), error) from None
    with file:
        yield file


def _results(out: str) -> ResultsFile | ResultsStream:
    return ResultsStream() if out == STANDARD_INPUT else ResultsFile(Path(out))


def _count_lines(source: str) -> int | None:
    """Count the lines of a file; a stream can be read only once."""
    path = Path(source)
    if source == STANDARD_INPUT or not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(1 for _ in jsonl_lines(file))
