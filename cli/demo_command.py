"""`halldetect demo`: three answers whose faults are known, audited before your eyes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from cli.audit_command import show_progress
from cli.consoles import results_console
from cli.progress_display import progress_display
from cli.render import LABEL_STYLES, VERDICT_STYLES, print_result
from halldetect.scoring.verdict import Label, Verdict
from halldetect.settings import ExtractorBackend, load_settings

if TYPE_CHECKING:
    from halldetect.trail import AuditResult


_FOLDER = Path(__file__).resolve().parent / "demo"


@dataclass(frozen=True, slots=True)
class DemoCase:
    """One pair of texts and what is known about it.

    Parameters
    ----------
    name, title, story : str
        What to call it and what is planted in it.
    source, response : str
        The texts.
    planted : str or None
        The words of the response that the source does not bear out; None when all of it is true.
    expected : Verdict
        On the planted words or, where there are none, on every claim.
    """

    name: str
    title: str
    story: str
    source: str
    response: str
    planted: str | None
    expected: Verdict

    @property
    def expected_label(self) -> Label:
        """The label a right audit gives."""
        return Label.FAITHFUL if self.planted is None else Label.HALLUCINATED


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit said about a case.

    Parameters
    ----------
    label : Label or None
        On the response.
    verdicts : tuple of Verdict
        On the planted claims or, where nothing is planted, on all claims.
    """

    label: Label | None
    verdicts: tuple[Verdict, ...]

    def agrees_with(self, case: DemoCase) -> bool:
        """Tell whether label and verdicts are those that the case was written for."""
        if self.label is not case.expected_label or not self.verdicts:
            return False
        if case.planted is None:
            return all(verdict is case.expected for verdict in self.verdicts)
        return case.expected in self.verdicts


def load_cases() -> list[DemoCase]:
    """Read the cases that come with the program."""
    entries = json.loads((_FOLDER / "demo.json").read_text(encoding="utf-8"))
    return [
        DemoCase(
            name=entry["name"],
            title=entry["title"],
            story=entry["story"],
            source=(_FOLDER / f"{entry['name']}.source.txt").read_text(encoding="utf-8"),
            response=(_FOLDER / f"{entry['name']}.response.txt").read_text(encoding="utf-8"),
            planted=entry["planted"],
            expected=Verdict(entry["expected"]),
        )
        for entry in entries
    ]


def finding_of(case: DemoCase, result: AuditResult) -> Finding:
    """Pick out of a trail what answers the question of a case."""
    claims = result.claims
    if case.planted is not None:
        start = case.response.index(case.planted)
        end = start + len(case.planted)
        claims = [claim for claim in claims if claim.span.start < end and start < claim.span.end]
    return Finding(result.label, tuple(claim.verdict for claim in claims))


def run_demo(extractor: ExtractorBackend, *, as_json: bool, verbose: bool) -> int:
    """Audit the three cases and say whether the planted faults were found.

    Parameters
    ----------
    extractor : ExtractorBackend
        Who proposes claims.
    as_json : bool
        Print the trails, one a line.
    verbose : bool
        Leave nothing out of the tables.

    Returns
    -------
    int
        0, whatever was found.

    Raises
    ------
    ModelError
        When a model is missing or broken.
    """
    from halldetect.model_loading import load_auditor
    from halldetect.record import make_record

    settings = load_settings(extractor=extractor)
    cases = load_cases()
    records = [
        make_record(custom_id=case.name, source=case.source, response=case.response)
        for case in cases
    ]
    with progress_display() as display:
        display.show("loading the models", None)
        auditor = load_auditor(settings, lambda progress: show_progress(display, progress))
        display.show("extracting claims", None)
        results = list(auditor.audit_many(records))
    if as_json:
        _print_lines(results)
    else:
        _print(results_console(), cases, results, verbose=verbose)
    return 0


def _print_lines(results: list[AuditResult]) -> None:
    from cli.result_json import trail_json

    for result in results:
        sys.stdout.write(trail_json(result) + "\n")


def _print(
    console: Console, cases: list[DemoCase], results: list[AuditResult], *, verbose: bool
) -> None:
    for case, result in zip(cases, results, strict=True):
        console.print(Rule(Text(case.title)))
        console.print(Text(case.story, style="italic"))
        print_result(console, result, verbose=verbose)
        console.print()
    console.print(Rule(Text("expected and found")))
    for case, result in zip(cases, results, strict=True):
        console.print(_summary(case, finding_of(case, result)))


def _summary(case: DemoCase, finding: Finding) -> Text:
    what = "every claim" if case.planted is None else "the planted claim"
    is_right = finding.agrees_with(case)
    text = Text.assemble(
        (f"{case.name}: ", "bold"),
        "expected ",
        (case.expected_label.value, LABEL_STYLES[case.expected_label]),
        f", {what} ",
        (case.expected.value, VERDICT_STYLES[case.expected]),
        "; found ",
    )
    if finding.label is None:
        text.append("no checkable claims")
    else:
        text.append(finding.label.value, LABEL_STYLES[finding.label])
    for verdict in VERDICT_STYLES:
        count = finding.verdicts.count(verdict)
        if count:
            text.append(f", {count} ")
            text.append(verdict.value, VERDICT_STYLES[verdict])
    text.append(" – right" if is_right else " – WRONG", "bold green" if is_right else "bold red")
    return text
