"""What is stored of an audit against what follows from its stored probabilities; no model runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from db.readings import StoredReading
from db.trails import StoredAudit, StoredClaim, TrailDamaged
from halldetect.errors import PolicyError, VerificationError
from halldetect.rescoring import scoring_input
from halldetect.scoring.matrix import ScoringInput
from halldetect.scoring.policy import parse_policy
from halldetect.scoring.score import AuditScore, score_audits
from halldetect.scoring.verdict import Verdict
from halldetect.trail import Evidence, Matrix

# The same numbers through the same function: what is left is the order of a sum.
_SAME_SCORE = 1e-12


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A stored field that does not follow from the stored probabilities.

    Parameters
    ----------
    field : str
        As the columns of `halldetect.claims` or `halldetect.audits` are called.
    claims : tuple of int
        Positions of the claims at fault; empty for a field of the audit itself.
    """

    field: str
    claims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StoredState:
    """The stored probabilities of an audit, and what follows from them.

    Parameters
    ----------
    scored : ScoringInput
        The probabilities.
    response_score : float or None
        Their score under the audit's policy.
    mismatches : tuple of Mismatch
        What is stored otherwise.
    """

    scored: ScoringInput
    response_score: float | None
    mismatches: tuple[Mismatch, ...]


def check_stored(audit: StoredAudit, reading: StoredReading | None) -> StoredState:
    """Score the stored probabilities of a completed audit and compare what stands beside them.

    Raises
    ------
    TrailDamaged
        When nothing follows from what is stored.
    """
    _check_reading(audit, reading)
    matrix = _whole_matrix(audit)
    policy = parse_policy({"name": audit.policy.name, **audit.policy.rules})
    try:
        scored = scoring_input(audit)
        score = score_audits([scored], policy).audit(0)
    except (VerificationError, PolicyError, ValueError) as error:
        # It was scored by itself, and so goes by the number 0.
        told = str(error).replace("audit 0, claim", f"audit {audit.id}, claim")
        raise TrailDamaged(f"what is stored cannot be scored: {told}") from None
    mismatches = (*_of_audit(audit, score), *_of_claims(audit, matrix, scored, score))
    return StoredState(scored, score.response_score, mismatches)


def is_same_score(one: float | None, other: float | None) -> bool:
    """Tell whether two scores are equal, but for the order of a sum."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _SAME_SCORE


def _whole_matrix(audit: StoredAudit) -> Matrix:
    matrix = audit.matrix
    rows = 0 if matrix is None else len(matrix.entailment)
    if matrix is None or rows != len(audit.claims):
        raise TrailDamaged(
            f"audit {audit.id} has {len(audit.claims)} claims and probabilities of {rows}: its "
            "trail is damaged"
        )
    for position in range(rows):
        arrays = (matrix.entailment, matrix.neutral, matrix.contradiction)
        lengths = {len(array[position]) for array in arrays}
        if lengths != {len(matrix.spans)}:
            raise TrailDamaged(
                f"audit {audit.id}, claim {position} has probabilities of "
                f"{' and '.join(map(str, sorted(lengths)))} spans, and its source has "
                f"{len(matrix.spans)}: its trail is damaged"
            )
    return matrix


def _check_reading(audit: StoredAudit, reading: StoredReading | None) -> None:
    if reading is None or audit.document is None:
        raise TrailDamaged(f"audit {audit.id} is completed, and its verification is not stored")
    if hashlib.sha256(reading.source.encode()).hexdigest() != audit.document.sha256:
        raise TrailDamaged(f"audit {audit.id}: its source is not the text of the stored SHA-256")
    chosen = reading.preselected_spans
    if chosen is not None and chosen < 1:
        raise TrailDamaged(f"audit {audit.id}: preselected_spans is {chosen}")


def _of_audit(audit: StoredAudit, score: AuditScore) -> Iterator[Mismatch]:
    counts = score.verdict_counts
    stored = audit.counts
    same = {
        "fedscore": is_same_score(audit.fedscore, score.response_score),
        "label": audit.label is score.label,
        "deciding_claim": audit.deciding_claim == score.deciding_claim,
        "supported": stored is not None and stored.supported == counts[Verdict.SUPPORTED],
        "contradicted": stored is not None and stored.contradicted == counts[Verdict.CONTRADICTED],
        "unsupported": stored is not None and stored.unsupported == counts[Verdict.UNSUPPORTED],
    }
    yield from (Mismatch(field) for field, is_same in same.items() if not is_same)


def _of_claims(
    audit: StoredAudit, matrix: Matrix, scored: ScoringInput, score: AuditScore
) -> Iterator[Mismatch]:
    checked = np.isfinite(scored.matrix.entailment).sum(axis=1)
    wrong: dict[str, list[int]] = {}
    for position, claim in enumerate(audit.claims):
        same = {
            "checked_spans": claim.checked_spans == checked[position],
            **_same_findings(claim, position, matrix, score),
        }
        for field, is_same in same.items():
            if not is_same:
                wrong.setdefault(field, []).append(position)
    yield from (Mismatch(field, tuple(positions)) for field, positions in wrong.items())


def _same_findings(
    claim: StoredClaim, position: int, matrix: Matrix, score: AuditScore
) -> dict[str, bool]:
    def is_best(evidence: Evidence, probability: float) -> bool:
        return bool(np.float32(evidence.probability) == np.float32(probability))

    def stands_at(evidence: Evidence, span: int) -> bool:
        return evidence.span == matrix.spans[span]

    favour, against = claim.entailment, claim.contradiction
    return {
        "verdict": claim.verdict is score.verdicts[position],
        "score": is_same_score(claim.score, float(score.values[position])),
        "entailment": is_best(favour, score.best_entailment[position]),
        "entailment_span": stands_at(favour, score.best_entailment_spans[position]),
        "contradiction": is_best(against, score.best_contradiction[position]),
        "contradiction_span": stands_at(against, score.best_contradiction_spans[position]),
    }
