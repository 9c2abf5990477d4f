"""From cells to claims: the best evidence for and against each, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halldetect.errors import PolicyError
from halldetect.scoring.cells import Cells
from halldetect.scoring.matrix import ProbabilityArray
from halldetect.scoring.policy import Aggregation, ClaimValue, Policy
from halldetect.scoring.segments import (
    BoolArray,
    FloatArray,
    IntArray,
    first_maxima,
    offsets_of,
    ranges,
)


@dataclass(frozen=True, slots=True, eq=False)
class BestEvidence:
    """The strongest entailment and, independently, the strongest contradiction of each claim.

    Parameters
    ----------
    entailment, contradiction : float64 array, shape (n_claims,)
        The maxima over the spans in use, widened from the stored float32 so that thresholds
        compare alike here and in a database.
    entailment_span, contradiction_span : int64 array, shape (n_claims,)
        Where the maxima stand; of equal spans the first.
    """

    entailment: FloatArray
    contradiction: FloatArray
    entailment_span: IntArray
    contradiction_span: IntArray


def best_evidence(cells: Cells, policy: Policy) -> BestEvidence:
    """Find the best evidence of every claim among the spans that `policy` uses.

    Raises
    ------
    PolicyError
        A claim has no scored span at the policy's granularities; the message names the claim.
    """
    used = _cells_used(cells, policy)
    entailment, entailment_span = first_maxima(_masked(cells.entailment, used), cells.cell_offsets)
    contradiction, contradiction_span = first_maxima(
        _masked(cells.contradiction, used), cells.cell_offsets
    )
    _refuse_unscored(cells, np.isneginf(entailment), policy)
    return BestEvidence(
        entailment.astype(np.float64),
        contradiction.astype(np.float64),
        entailment_span,
        contradiction_span,
    )


def unscored_claims(cells: Cells, policy: Policy) -> BoolArray:
    """Tell which claims have no scored span among those that `policy` uses, shape (n_claims,).

    Raises
    ------
    PolicyError
        A source has none of the policy's granularities.
    """
    used = _cells_used(cells, policy)
    entailment, _ = first_maxima(_masked(cells.entailment, used), cells.cell_offsets)
    return np.isneginf(entailment)


def claim_values(best: BestEvidence, policy: Policy) -> FloatArray:
    """Return what each claim is worth under `policy`, shape ``(n_claims,)``, from -1 to 1.

    Under ``row-max``, `best` already looked at the finest granularity alone.
    """
    if policy.claim_value is ClaimValue.CONTRASTIVE:
        return best.entailment - best.contradiction
    if policy.claim_value is ClaimValue.ENTAILMENT:
        return best.entailment
    return 1.0 - best.contradiction


def _cells_used(cells: Cells, policy: Policy) -> BoolArray | None:
    """Tell which cells count as evidence; None when all of them do."""
    if policy.aggregation is Aggregation.ROW_MAX:
        masks = [chunks.finest_span_mask() for chunks in cells.chunk_spans]
    elif policy.granularities is None:
        return None
    else:
        masks = [chunks.span_mask(policy.granularities) for chunks in cells.chunk_spans]
    mask_offsets = offsets_of([len(mask) for mask in masks])
    flat_masks = np.concatenate([np.zeros(0, dtype=bool), *masks])
    counts = np.diff(cells.cell_offsets)
    return flat_masks[ranges(mask_offsets[:-1][cells.structure_of_claim], counts)]


def _masked(probabilities: ProbabilityArray, used: BoolArray | None) -> ProbabilityArray:
    """Put minus infinity, which no maximum picks, where a cell is not scored or not used."""
    ignored = np.isnan(probabilities)
    if used is not None:
        ignored |= ~used
    return np.where(ignored, np.float32(-np.inf), probabilities)


def _refuse_unscored(cells: Cells, unscored: BoolArray, policy: Policy) -> None:
    claims = np.flatnonzero(unscored)
    if len(claims):
        raise PolicyError(
            f"policy {policy.name!r} reads only spans that pre-selection skipped for "
            f"{cells.claim_name(int(claims[0]))} ({len(claims)} such claims in all); use more "
            "granularities, or audit again with a larger pre-selection"
        )
