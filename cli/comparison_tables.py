"""What a policy would change, for people to read."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.printable import printable
from cli.render import LABEL_STYLES, VERDICT_STYLES
from cli.scoring_service import Scoring
from db.comparison import Comparison, ScoreShift
from halldetect.scoring.verdict import Label, Verdict
from halldetect.wording import counted

_REASONS = {
    "granularities_missing": "their sources have no chunks of the policy's granularities",
    "spans_not_scored": "pre-selection skipped what the policy reads; audit them again",
    "probabilities_pruned": "their probabilities were deleted",
}


def print_comparison(console: Console, scoring: Scoring, report: Comparison) -> None:
    """Print what was scored and what it changes.

    Parameters
    ----------
    console : Console
        Where to.
    scoring : Scoring
        A completed rescoring.
    report : Comparison
        Of it.
    """
    against = "the audits' own policies" if report.against is None else report.against.name
    policy = report.policy
    _print(
        console,
        f"policy {policy.name} ({policy.version}) against {against}",
        _summary(scoring, report),
    )
    if scoring.skips:
        console.print()
    for skip in scoring.skips:
        reason = _REASONS.get(skip.reason, skip.reason)
        _print(
            console,
            f"skipped: {counted(skip.audits, 'audit')}, {reason} (such as audit {skip.example})",
        )
    if report.compared:
        _print(console, "audits: label before, and after", _label_table(report))
        _print(console, "claims: verdict before, and after", _verdict_table(report))
    for title, shifts in _examples(report):
        _print(console, title, _example_table(shifts))


def _print(console: Console, line: str, table: Table | None = None) -> None:
    """Print a line, which a table's own title would break at the table's width, and a table."""
    console.print(Text(printable(line)), soft_wrap=True)
    if table is not None:
        console.print(table)


def _summary(scoring: Scoring, report: Comparison) -> Table:
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, count in {
        "audits selected": scoring.total,
        "scored now": scoring.scored,
        "scored before": scoring.present,
        "skipped": scoring.skipped,
        "compared": report.compared,
        "without claims": report.no_checkable_claims,
    }.items():
        table.add_row(name, f"{count:,}")
    if report.unscored:
        table.add_row("lacking a score", f"{report.unscored:,}")
    if report.mean_before is not None and report.mean_after is not None:
        table.add_section()
        table.add_row("mean score before", f"{report.mean_before:.4f}")
        table.add_row("mean score after", f"{report.mean_after:.4f}")
    return table


def _label_table(report: Comparison) -> Table:
    labels = report.labels
    counts = {
        (Label.FAITHFUL, Label.FAITHFUL): labels.stay_faithful,
        (Label.FAITHFUL, Label.HALLUCINATED): labels.to_hallucinated,
        (Label.HALLUCINATED, Label.FAITHFUL): labels.to_faithful,
        (Label.HALLUCINATED, Label.HALLUCINATED): labels.stay_hallucinated,
    }
    table = Table()
    table.add_column("before")
    for after in Label:
        table.add_column(Text(after.value, LABEL_STYLES[after]), justify="right")
    for before in Label:
        row = [f"{counts[before, after]:,}" for after in Label]
        table.add_row(Text(before.value, LABEL_STYLES[before]), *row)
    return table


def _verdict_table(report: Comparison) -> Table:
    counts = {(change.before, change.after): change.claims for change in report.verdicts}
    table = Table()
    table.add_column("before")
    for after in Verdict:
        table.add_column(Text(after.value, VERDICT_STYLES[after]), justify="right")
    for before in Verdict:
        row = [f"{counts.get((before, after), 0):,}" for after in Verdict]
        table.add_row(Text(before.value, VERDICT_STYLES[before]), *row)
    return table


def _examples(report: Comparison) -> Iterator[tuple[str, list[ScoreShift]]]:
    """Name the lists that are worth showing; large shifts only where no label flips."""
    if report.to_hallucinated:
        yield "faithful before, hallucinated after", report.to_hallucinated
    if report.to_faithful:
        yield "hallucinated before, faithful after", report.to_faithful
    if report.largest_shifts and not (report.to_hallucinated or report.to_faithful):
        yield "no label flips; the scores that change most", report.largest_shifts


def _example_table(shifts: list[ScoreShift]) -> Table:
    table = Table()
    table.add_column("audit", justify="right", no_wrap=True)
    table.add_column("custom_id")
    table.add_column("before", justify="right", no_wrap=True)
    table.add_column("after", justify="right", no_wrap=True)
    for shift in shifts:
        custom_id = printable(shift.custom_id or "–")
        table.add_row(
            shift.id, Text(custom_id), f"{shift.score_before:.4f}", f"{shift.score_after:.4f}"
        )
    return table
