"""One audit's trail for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from cli.printable import printable, shortened
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import AuditResult, ClaimTrail, Evidence, Outcome
from halldetect.wording import counted

VERDICT_STYLES = {
    Verdict.SUPPORTED: "bold green",
    Verdict.CONTRADICTED: "bold red",
    Verdict.UNSUPPORTED: "bold yellow",
}
LABEL_STYLES = {Label.FAITHFUL: "bold green", Label.HALLUCINATED: "bold red"}
_QUOTE_CHARACTERS = 320


def print_result(console: Console, result: AuditResult, *, verbose: bool = False) -> None:
    """Print score, claims with their evidence, and everything that was not scored.

    Parameters
    ----------
    console : Console
        Where to.
    result : AuditResult
        A completed audit.
    verbose : bool
        Quote long evidence in full and list every rejected line.
    """
    console.print(_headline(result))
    if result.claims:
        console.print(_claims_table(result, verbose=verbose))
    for part in (
        *_unaudited(result, verbose=verbose),
        *_rejected(result, verbose=verbose),
        *_warnings(result),
        _models(result.models),
    ):
        console.print(part)


def _headline(result: AuditResult) -> Text:
    if result.outcome is Outcome.NO_CHECKABLE_CLAIMS or result.fedscore is None:
        return Text.assemble(
            ("no checkable claims", "bold"),
            ": the response asserts nothing that the source could bear out, so there is no score",
        )
    threshold = result.policy.rules["response_threshold"]
    return Text.assemble(
        ("FEDscore ", "bold"),
        (f"{result.fedscore:.4f}", "bold"),
        "  ",
        _label(result.label),
        f"  (0 to 1, hallucinated from {threshold:g}; policy {printable(result.policy.name)})",
    )


def _label(label: Label | None) -> tuple[str, str]:
    return ("", "") if label is None else (label.value, LABEL_STYLES[label])


def _claims_table(result: AuditResult, *, verbose: bool) -> Table:
    table = Table(title=_counted(result), title_justify="left", show_lines=True, expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("claim", ratio=2)
    table.add_column("best evidence in the source", ratio=3)
    for number, claim in enumerate(result.claims):
        table.add_row(
            str(number + 1),
            Text(claim.verdict.value, style=VERDICT_STYLES[claim.verdict]),
            f"{claim.score:.3f}",
            _claim(claim, is_deciding=number == result.deciding_claim, verbose=verbose),
            _evidence(claim, verbose=verbose),
        )
    return table


def _counted(result: AuditResult) -> Text:
    if result.counts is None:
        return Text("claims")
    tallies = [
        f"{getattr(result.counts, verdict.value)} {verdict.value}" for verdict in VERDICT_STYLES
    ]
    return Text(f"{counted(len(result.claims), 'claim')}: {', '.join(tallies)}")


def _claim(claim: ClaimTrail, *, is_deciding: bool, verbose: bool) -> Text:
    text = Text(printable(claim.text))
    place = f"response {claim.span.start}–{claim.span.end}"
    if is_deciding:
        place += ", decides the score"
    text.append(f"\n{place}", style="dim")
    if claim.verified_text != claim.text:
        limit = None if verbose else _QUOTE_CHARACTERS
        verified = shortened(printable(claim.verified_text), limit)
        text.append(f"\nverified as: {verified}", style="dim")
    return text


def _evidence(claim: ClaimTrail, *, verbose: bool) -> Text:
    if claim.verdict is Verdict.CONTRADICTED:
        return _quote(claim.contradiction, "contradiction", verbose=verbose)
    return _quote(claim.entailment, "entailment", verbose=verbose)


def _quote(evidence: Evidence, relation: str, *, verbose: bool) -> Text:
    limit = None if verbose else _QUOTE_CHARACTERS
    text = Text(f"“{shortened(printable(evidence.text), limit)}”")
    text.append(
        f"\nsource {evidence.span.start}–{evidence.span.end}, chunk {evidence.chunk}, "
        f"{relation} {evidence.probability:.3f}",
        style="dim",
    )
    return text


def _unaudited(result: AuditResult, *, verbose: bool) -> Iterator[RenderableType]:
    if not result.unaudited:
        return
    limit = None if verbose else _QUOTE_CHARACTERS
    yield Text("not audited, since nothing in it can be true or false of the source:")
    for left in result.unaudited:
        reason = left.reason.value.replace("_", " ")
        quote = shortened(printable(left.text), limit)
        yield Text(f"  {reason}: “{quote}” (response {left.span.start}–{left.span.end})")


def _rejected(result: AuditResult, *, verbose: bool) -> Iterator[RenderableType]:
    if not result.rejected:
        return
    lines = counted(len(result.rejected), "line")
    hint = "" if verbose else " (--verbose lists them)"
    yield Text(f"rejected {lines} that the extractor wrote and the response does not say{hint}")
    if verbose:
        for line in result.rejected:
            reason = line.reason.value.replace("_", " ")
            yield Text(f"  {reason}: “{printable(line.text)}” ({printable(line.detail)})")


def _warnings(result: AuditResult) -> Iterator[RenderableType]:
    for warning in result.warnings:
        yield Text(f"warning: {printable(warning)}", style="yellow")


def _models(models: Mapping[str, Mapping[str, Any]]) -> Text:
    return Text(
        f"models: extractor {_model(models['extractor'])}; NLI {_model(models['nli'])}", style="dim"
    )


def _model(model: Mapping[str, Any]) -> str:
    name, backend, dtype = (str(model[key]) for key in ("name", "backend", "dtype"))
    details = ", ".join(part for part in (backend, dtype) if part and part != name)
    return printable(f"{name} ({details})" if details else name)
