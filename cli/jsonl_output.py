"""The results file of a batch: whole lines only, and the answers of an earlier run kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from cli.consoles import tell
from cli.text_input import unreadable
from halldetect.errors import InputError

_LINE_START = b'{"line":'
_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line of the input that is not blank.

    Parameters
    ----------
    number : int
        Counted from 1, blank lines included.
    content : bytes
        Without its line end.
    """

    number: int
    content: bytes

    def identity(self) -> dict[str, Any]:
        """Return the fields by which its answer is found again."""
        return {"line": self.number, "line_sha256": hashlib.sha256(self.content).hexdigest()}


class ResultsFile:
    """Appends answers to a file after those that an earlier run left in it.

    Answers stand in the order of the input, so those already there answer its first lines. Use
    it as a context; until the last kept answer has been compared, nothing is changed.

    Parameters
    ----------
    path : Path
        Created if it is not there.

    Raises
    ------
    InputError
        When it is no regular file, cannot be written, or another run is writing it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _refuse_device(path)
        try:
            self._reader = path.open("a+b")
            self._writer = path.open("ab", buffering=0)
        except OSError as error:
            raise unreadable(str(path), error) from None
        self._lock()
        self._end = _end_of_last_line(self._reader)
        self._reader.seek(0)
        self._is_checked = False

    def next_kept(self) -> dict[str, Any] | None:
        """Return the next answer of the earlier run, or None when there are no more.

        Raises
        ------
        InputError
            When the file holds something else.
        """
        if self._reader.tell() >= self._end:
            self._drop_cut_line()
            return None
        number = self._reader.seek(0, 1)
        line = self._reader.readline()
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not {"line", "line_sha256", "status"} <= answer.keys():
            raise InputError(
                f"{self._path}: byte {number + 1} begins a line that is no result of "
                "`halldetect audit --jsonl`; choose another --out"
            )
        return answer

    def append(self, line: bytes) -> None:
        """Write one answer; it is in the operating system's hands when this returns.

        Raises
        ------
        InputError
            When the disk is full or gone.
        """
        try:
            _write_all(self._writer, line)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written ({error.strerror})") from None

    def _lock(self) -> None:
        try:
            fcntl.flock(self._writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            raise InputError(f"{self._path}: another run is writing it") from None
        except OSError:
            return  # a file system without locks

    def _drop_cut_line(self) -> None:
        """Cut off the line that an interrupted write left unfinished."""
        if self._is_checked:
            return
        self._is_checked = True
        self._reader.seek(self._end)
        rest = self._reader.read(len(_LINE_START))
        if not rest:
            return
        if not (rest.startswith(_LINE_START) or _LINE_START.startswith(rest)):
            raise InputError(
                f"{self._path}: ends in a line that is no result of `halldetect audit --jsonl`; "
                "choose another --out"
            )
        self._writer.truncate(self._end)
        tell(f"{self._path}: its last line was cut short; that audit is done again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._reader.close()
        self._writer.close()


class ResultsStream:
    """Writes answers to standard output, where nothing is kept from an earlier run."""

    def next_kept(self) -> dict[str, Any] | None:
        """Return None: there are no earlier answers."""
        return None

    def append(self, line: bytes) -> None:
        """Write one answer and flush it."""
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def check_answers_line(
    answer: Mapping[str, Any], line: InputLine, settings_sha256: str, out: str
) -> None:
    """Refuse to go on after answers to another input or under other settings.

    Parameters
    ----------
    answer : mapping
        One line of the results file.
    line : InputLine
        The line of the input in the same place.
    settings_sha256 : str
        Digest of everything that the answers of this run depend on.
    out : str
        Name of the results file, for the message.

    Raises
    ------
    InputError
        Naming the line.
    """
    identity = line.identity()
    if any(answer[field] != identity[field] for field in identity):
        raise InputError(
            f"{out}: its answer to line {answer['line']} belongs to another input (line "
            f"{line.number} has changed since, or is new); choose another --out, or delete it"
        )
    if answer.get("settings_sha256", settings_sha256) != settings_sha256:
        raise InputError(
            f"{out}: its answer to line {line.number} was made with other models, another policy, "
            f"another pre-selection or other limits ({_made_with(answer)}); choose another "
            "--out, or use those"
        )


def _made_with(answer: Mapping[str, Any]) -> str:
    models = answer["models"]
    return (
        f"policy {answer['policy']['name']} {answer['policy']['version']}, extractor "
        f"{models['extractor']['name']}, NLI {models['nli']['name']}, mode "
        f"{answer['extraction_mode']}"
    )


def _refuse_device(path: Path) -> None:
    """Refuse pipes and devices, which have no end; opening a folder says what is wrong."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # not there yet, or opening it tells why not
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or str(path) == os.devnull):
        raise InputError(f"{path}: is no regular file; give a file, or - for standard output")


def _end_of_last_line(file: BinaryIO) -> int:
    position = file.seek(0, 2)
    while position > 0:
        start = max(0, position - _BLOCK)
        file.seek(start)
        newline = file.read(position - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        position = start
    return 0


def _write_all(file: Any, content: bytes) -> None:
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[file.write(remaining) :]
