"""A claim beside its evidence, within its response, for a reviewer to read."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from cli.printable import printable, shortened
from cli.render import VERDICT_STYLES
from cli.review_keys import KEYS
from cli.review_service import FlaggedClaim, ReviewedClaim, ReviewSummary
from halldetect.trail import Evidence

# Of a long response this much is shown on both sides of the claim, and of long evidence so much.
_AROUND_CHARACTERS = 600
_EVIDENCE_CHARACTERS = 1500
_CONTEXT_CHARACTERS = 600


def claim_screen(flagged: FlaggedClaim, number: int, total: int) -> RenderableType:
    """Show a claim: its place, what was asked, the response, and the evidence both ways.

    Parameters
    ----------
    flagged : FlaggedClaim
        The claim.
    number, total : int
        Which of the batch's flagged claims it is, from 1.
    """
    parts: list[RenderableType] = [Rule(_headline(flagged, number, total), align="left")]
    if flagged.context:
        asked = shortened(printable(flagged.context), _CONTEXT_CHARACTERS)
        parts.append(Text.assemble(("asked: ", "dim"), asked))
    parts.append(_response(flagged))
    parts.append(_evidence_table(flagged.claim))
    parts.append(_legend())
    return Group(*parts)


def summary_table(summary: ReviewSummary) -> RenderableType:
    """Show how the reviews of a batch compare with its verdicts."""
    table = Table(title=Text("all reviews of the batch", style="bold"), title_justify="left")
    table.add_column("verdict")
    table.add_column("reviewed", justify="right")
    table.add_column("agreed", justify="right")
    for one in summary.by_verdict:
        if one.reviews:
            agreed = "" if one.precision is None else f"{one.precision:.0%}"
            style = VERDICT_STYLES[one.verdict]
            table.add_row(Text(one.verdict.value, style=style), f"{one.reviews:,}", agreed)
    if summary.flag_precision is None:
        return Text("nothing of the batch is reviewed yet")
    return Group(
        table,
        Text(
            f"precision of the flags: {summary.flag_precision:.0%} of the flagged claims that were "
            "reviewed are not borne out by the source"
        ),
    )


def _headline(flagged: FlaggedClaim, number: int, total: int) -> Text:
    name = "" if flagged.custom_id is None else f" ({printable(flagged.custom_id)})"
    return Text.assemble(
        f"claim {number:,} of {total:,}, audit {flagged.audit_id}{name}: ",
        (flagged.claim.verdict.value, VERDICT_STYLES[flagged.claim.verdict]),
    )


def _response(flagged: FlaggedClaim) -> Text:
    """Show the response with the claim's place marked."""
    response, span = flagged.response, flagged.claim.span
    first = max(0, span.start - _AROUND_CHARACTERS)
    last = span.end + _AROUND_CHARACTERS
    text = Text()
    text.append("… " if first else "")
    text.append(printable(response[first : span.start]))
    text.append(printable(response[span.start : span.end]), style="reverse")
    text.append(printable(response[span.end : last]))
    text.append(" …" if last < len(response) else "")
    return text


def _evidence_table(claim: ReviewedClaim) -> Table:
    table = Table(expand=True, show_lines=True)
    table.add_column("claim", ratio=2)
    table.add_column("what the source says", ratio=3)
    said = Text(printable(claim.text), style="bold")
    if claim.verified_text != claim.text:
        said.append(f"\nverified as: {printable(claim.verified_text)}", style="not bold dim")
    against, favour = claim.contradiction, claim.entailment
    if against.span == favour.span:
        both = f"for it {favour.probability:.2f}, against it {against.probability:.2f}"
        evidence = [_quote(both, favour)]
    else:
        evidence = [
            _quote(f"against it {against.probability:.2f}", against),
            _quote(f"for it {favour.probability:.2f}", favour),
        ]
    table.add_row(said, Text("\n\n").join(evidence))
    return table


def _quote(says: str, evidence: Evidence) -> Text:
    place = f"{says}; characters {evidence.span.start} to {evidence.span.end}\n"
    return Text.assemble((place, "dim"), shortened(printable(evidence.text), _EVIDENCE_CHARACTERS))


def _legend() -> Text:
    text = Text()
    for key, meaning in KEYS.items():
        text.append(key.value, style="bold")
        text.append(f" {meaning}   ")
    return text
