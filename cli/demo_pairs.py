"""The answers that come with the program, what is planted in them, and what an audit found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome

if TYPE_CHECKING:
    from halldetect.trail import AuditResult, ClaimTrail

PAIRS_FILE = Path(__file__).resolve().parent / "demo" / "pairs.jsonl"


@dataclass(frozen=True, slots=True)
class DemoPair:
    """One answer and what is known about it.

    Parameters
    ----------
    name : str
        Its custom_id.
    topic : str
        Of its source.
    response : str
        The answer.
    fault : str or None
        Kind of what is planted in it; None when nothing is.
    planted : str or None
        The words that the source does not bear out.
    expected : str
        What a right audit says of it: a label, or that there are no checkable claims.
    """

    name: str
    topic: str
    response: str
    fault: str | None
    planted: str | None
    expected: str

    def is_planted(self, claim: ClaimTrail) -> bool:
        """Tell whether a claim says any of the planted words."""
        if self.planted is None:
            return False
        start = self.response.index(self.planted)
        return claim.span.start < start + len(self.planted) and start < claim.span.end


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit said about a pair.

    Parameters
    ----------
    pair : DemoPair
        The pair.
    result : AuditResult
        Its audit.
    """

    pair: DemoPair
    result: AuditResult

    @property
    def found(self) -> str:
        """The label or, where there is none, why."""
        if self.result.label is not None:
            return self.result.label.value
        return (self.result.outcome or self.result.status).value

    @property
    def is_right(self) -> bool:
        """Whether that is what the pair was written for."""
        return self.found == self.pair.expected

    @property
    def caught(self) -> Verdict | None:
        """The worst verdict on the planted words, or None when nothing is planted or read."""
        verdicts = {claim.verdict for claim in self.result.claims if self.pair.is_planted(claim)}
        worst_first = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.SUPPORTED)
        return next((verdict for verdict in worst_first if verdict in verdicts), None)


def load_pairs() -> list[DemoPair]:
    """Read the pairs, in the order of their file."""
    pairs = []
    for line in PAIRS_FILE.read_bytes().splitlines():
        record = json.loads(line)
        about = record["metadata"]
        pairs.append(
            DemoPair(
                name=record["custom_id"],
                topic=about["topic"],
                response=record["response"],
                fault=about["fault"],
                planted=about["planted"],
                expected=about["expected"],
            )
        )
    return pairs


def findings(pairs: Sequence[DemoPair], results: Sequence[AuditResult]) -> list[Finding]:
    """Pair each pair with its audit; `results` are in the order of the file."""
    return [Finding(pair, result) for pair, result in zip(pairs, results, strict=True)]


def most_telling(found: Sequence[Finding]) -> Finding:
    """Return a finding worth reading in full: planted words that the source contradicts, if any."""
    preferred = [one for one in found if one.is_right and one.caught is Verdict.CONTRADICTED]
    flagged = [one for one in found if one.found == Label.HALLUCINATED]
    return [*preferred, *flagged, *found][0]


def count_of(found: Sequence[Finding], expected: Label | Outcome) -> int:
    """Return how many pairs were written to be found so."""
    return sum(one.pair.expected == expected for one in found)
