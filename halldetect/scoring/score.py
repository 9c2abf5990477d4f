"""Score audits: a pure function of probabilities, claim flags and a policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halldetect.scoring.aggregate import aggregate_responses, claim_weights, deciding_claims
from halldetect.scoring.cells import Cells, cells_of
from halldetect.scoring.evidence import BestEvidence, best_evidence, claim_values
from halldetect.scoring.matrix import ChunkSpans, ProbabilityMatrix, ScoringInput
from halldetect.scoring.policy import Policy
from halldetect.scoring.segments import BoolArray, FloatArray, IntArray
from halldetect.scoring.verdict import Label, Verdict, label_of, supported_and_contradicted


@dataclass(frozen=True, slots=True, eq=False)
class AuditScore:
    """One audit under one policy.

    Parameters
    ----------
    values : float64 array, shape (n_claims,)
        What each claim is worth under the policy.
    verdicts : tuple of Verdict
        One a claim.
    best_entailment, best_contradiction : float64 array, shape (n_claims,)
        Highest P(E) and, independently, highest P(C) over the spans the policy uses.
    best_entailment_spans, best_contradiction_spans : int64 array, shape (n_claims,)
        Span numbers where they stand.
    response_score : float or None
        From 0 to 1, higher means more likely hallucinated; None without claims.
    label : Label or None
        None without claims.
    deciding_claim : int or None
        Number of the claim with the lowest value, where one claim decides (``fedscore``, ``min``).
    """

    values: FloatArray
    verdicts: tuple[Verdict, ...]
    best_entailment: FloatArray
    best_entailment_spans: IntArray
    best_contradiction: FloatArray
    best_contradiction_spans: IntArray
    response_score: float | None
    label: Label | None
    deciding_claim: int | None

    @property
    def verdict_counts(self) -> dict[Verdict, int]:
        """Number of claims with each verdict, zeros included."""
        counts = Counter(self.verdicts)
        return {verdict: counts[verdict] for verdict in Verdict}


@dataclass(frozen=True, slots=True, eq=False)
class BatchScore:
    """Many audits under one policy, as flat arrays.

    Parameters
    ----------
    policy : Policy
        The rules.
    claim_offsets : int64 array, shape (n_audits + 1,)
        Claims of each audit.
    values : float64 array, shape (n_claims,)
        Claim values.
    best : BestEvidence
        Best evidence of each claim.
    supported, contradicted : bool array, shape (n_claims,)
        Verdicts; a claim that is neither is unsupported.
    response_scores : float64 array, shape (n_audits,)
        NaN for an audit without claims.
    deciding : int64 array, shape (n_audits,), or None
        Deciding claim of each audit, -1 without claims; None where no single claim decides.
    """

    policy: Policy
    claim_offsets: IntArray
    values: FloatArray
    best: BestEvidence
    supported: BoolArray
    contradicted: BoolArray
    response_scores: FloatArray
    deciding: IntArray | None

    def __len__(self) -> int:
        return len(self.response_scores)

    def audit(self, number: int) -> AuditScore:
        """Return the score of one audit, counted from 0."""
        claims = slice(int(self.claim_offsets[number]), int(self.claim_offsets[number + 1]))
        has_claims = claims.stop > claims.start
        response_score = float(self.response_scores[number]) if has_claims else None
        return AuditScore(
            values=self.values[claims],
            verdicts=tuple(
                _verdict(supported, contradicted)
                for supported, contradicted in zip(
                    self.supported[claims], self.contradicted[claims], strict=True
                )
            ),
            best_entailment=self.best.entailment[claims],
            best_entailment_spans=self.best.entailment_span[claims],
            best_contradiction=self.best.contradiction[claims],
            best_contradiction_spans=self.best.contradiction_span[claims],
            response_score=response_score,
            label=label_of(response_score, self.policy),
            deciding_claim=self._deciding_claim(number) if has_claims else None,
        )

    def _deciding_claim(self, number: int) -> int | None:
        return None if self.deciding is None else int(self.deciding[number])


def score_audits(audits: Sequence[ScoringInput], policy: Policy) -> BatchScore:
    """Score many audits under `policy` in a few numpy calls.

    Memory grows with the cells of the call (about 60 bytes each); audits are independent, so a
    caller with very many passes them in portions and gets the same bits.

    Raises
    ------
    VerificationError
        A cell is no probability distribution, or a claim was scored against no span.
    PolicyError
        The policy reads granularities that a source lacks or that were skipped for a claim.
    """
    return score_cells(cells_of(audits), policy)


def score_cells(cells: Cells, policy: Policy) -> BatchScore:
    """Score audits whose cells lie end to end, and are known to be probabilities, under `policy`.

    Raises
    ------
    PolicyError
        The policy reads granularities that a source lacks or that were skipped for a claim.
    """
    best = best_evidence(cells, policy)
    values = claim_values(best, policy)
    supported, contradicted = supported_and_contradicted(best, values, policy)
    return BatchScore(
        policy=policy,
        claim_offsets=cells.claim_offsets,
        values=values,
        best=best,
        supported=supported,
        contradicted=contradicted,
        response_scores=aggregate_responses(
            values, cells.claim_offsets, claim_weights(cells.flagged), policy
        ),
        deciding=deciding_claims(values, cells.claim_offsets, policy),
    )


def score_audit(
    matrix: ProbabilityMatrix, flagged: BoolArray, chunks: ChunkSpans, policy: Policy
) -> AuditScore:
    """Score one audit under `policy`; the same computation as `score_audits`.

    Parameters
    ----------
    matrix : ProbabilityMatrix
        Claims by spans.
    flagged : bool array, shape (n_claims,)
        True for a claim with a name, a number or a date.
    chunks : ChunkSpans
        How the source's spans make up its chunks.
    policy : Policy
        The rules.

    Raises
    ------
    VerificationError, PolicyError
        As for `score_audits`.
    """
    return score_audits([ScoringInput(matrix, np.asarray(flagged), chunks)], policy).audit(0)


def _verdict(supported: bool, contradicted: bool) -> Verdict:
    if contradicted:
        return Verdict.CONTRADICTED
    return Verdict.SUPPORTED if supported else Verdict.UNSUPPORTED
