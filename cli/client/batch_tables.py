"""A batch for people to read: one line while it runs, tables when they ask or it is over."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from cli.client.answers import Answer
from cli.client.batch_state import BatchState, RunningAudit
from cli.client.throughput import Throughput
from cli.pace import duration
from cli.printable import printable
from cli.render import LABEL_STYLES, VERDICT_STYLES
from halldetect.wording import counted

_SECONDS_OF_A_LONG_RUN = 30.0


class FlaggedAudit(Answer):
    """A response that was found hallucinated.

    Parameters
    ----------
    id : str
        Of the audit.
    line : int or None
        Where it stands in the uploaded file.
    custom_id : str or None
        The caller's own name for it.
    fedscore : float
        Its score.
    """

    id: str
    line: int | None
    custom_id: str | None
    fedscore: float


def progress_line(state: BatchState, throughput: Throughput) -> Text:
    """Say in one line how far a batch is, what was found, and how long it takes."""
    text = Text(f"{state.finished:,} of {counted(state.total, 'audit')}")
    for label, style in LABEL_STYLES.items():
        _append_count(text, getattr(state, label.value), label.value, style)
    _append_count(text, state.no_checkable_claims, "without claims", "")
    _append_count(text, state.failed, "failed", "red")
    _append_count(text, state.cancelled, "cancelled", "")
    if state.extracted:
        text.append(f", claims of {state.finished + state.extracted:,} known")
    claims = [
        (count, verdict)
        for verdict in VERDICT_STYLES
        if (count := getattr(state, verdict.value)) > 0
    ]
    for number, (count, verdict) in enumerate(claims):
        text.append("; claims: " if number == 0 else ", ")
        text.append(f"{count:,} {verdict.value}", VERDICT_STYLES[verdict])
    if not state.is_over:
        _append_pace(text, state, throughput)
        running = state.longest_running
        if running is not None and running.seconds >= _SECONDS_OF_A_LONG_RUN:
            text.append(f"; {running_audit(running)}")
    return text


def running_audit(running: RunningAudit) -> str:
    """Say what is being done to an audit, and for how long."""
    of_claims = "" if running.claims is None else f" of {counted(running.claims, 'claim')}"
    return f"audit {running.id} in {running.stage}{of_claims} for {duration(running.seconds)}"


def _append_count(text: Text, count: int, name: str, style: str) -> None:
    if count:
        text.append(", ")
        text.append(f"{count:,} {name}", style)


def _append_pace(text: Text, state: BatchState, throughput: Throughput) -> None:
    rate, left = throughput.rate, throughput.seconds_left(state.waiting)
    if rate is not None and left is not None:
        text.append(f"; {rate:,.1f} audits/s, about {duration(left)} left")


def batch_table(state: BatchState) -> Table:
    """Lay out everything that is counted of a batch."""
    table = Table(
        title=f"batch {state.id}: {_status(state)}", title_justify="left", show_header=False
    )
    table.add_column()
    table.add_column(justify="right")
    table.add_row("audits", f"{state.total:,}", end_section=True)
    for label in reversed(LABEL_STYLES):
        table.add_row(label.value, f"{getattr(state, label.value):,}")
    table.add_row("no checkable claims", f"{state.no_checkable_claims:,}")
    table.add_row("failed", f"{state.failed:,}")
    if state.cancelled:
        table.add_row("cancelled", f"{state.cancelled:,}")
    if state.waiting:
        table.add_row("waiting for extraction", f"{state.queued:,}")
        table.add_row("waiting for verification", f"{state.extracted:,}")
        table.add_row("of these in work", f"{state.running:,}")
    table.add_section()
    for verdict in VERDICT_STYLES:
        table.add_row(f"claims {verdict.value}", f"{getattr(state, verdict.value):,}")
    if state.seconds is not None:
        table.add_section()
        table.add_row("time", duration(state.seconds))
        if state.seconds > 0:
            table.add_row("rate", f"{state.finished / state.seconds:,.1f} audits/s")
    return table


def flagged_table(flagged: Sequence[FlaggedAudit]) -> Table:
    """List the responses with the highest scores."""
    table = Table(title="most hallucinated", title_justify="left")
    table.add_column("audit", justify="right", no_wrap=True)
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("custom_id")
    table.add_column("FEDscore", justify="right", no_wrap=True)
    for audit in flagged:
        custom_id = printable(audit.custom_id or "–")
        line = "–" if audit.line is None else f"{audit.line:,}"
        table.add_row(audit.id, line, Text(custom_id), f"{audit.fedscore:.4f}")
    return table


def _status(state: BatchState) -> str:
    status = state.status.replace("_", " ")
    return status if state.is_over else f"{status}, {state.fraction:.0%} done"
