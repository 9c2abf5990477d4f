"""Scoring what a policy fits: audits that it cannot judge are set aside with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from halldetect.errors import PolicyError
from halldetect.scoring.cells import Cells
from halldetect.scoring.evidence import unscored_claims
from halldetect.scoring.policy import Policy
from halldetect.scoring.score import BatchScore, score_cells
from halldetect.scoring.segments import BoolArray, IntArray, offsets_of


class Misfit(StrEnum):
    """Why a policy cannot judge an audit."""

    GRANULARITIES_MISSING = "granularities_missing"
    """Its source has no chunk of the granularities that the policy reads."""
    SPANS_NOT_SCORED = "spans_not_scored"
    """Pre-selection skipped all spans that the policy reads, for at least one claim."""


@dataclass(frozen=True, slots=True, eq=False)
class FittingScore:
    """What a policy makes of those audits that it can judge.

    Parameters
    ----------
    audits : int64 array
        Numbers of the audits that were scored, ascending.
    score : BatchScore
        Of these audits, in this order.
    misfits : dict
        Numbers of all others, by the reason.
    """

    audits: IntArray
    score: BatchScore
    misfits: dict[Misfit, IntArray]


def score_fitting(cells: Cells, policy: Policy) -> FittingScore:
    """Score all audits that `policy` can judge; where it can judge all, as `score_cells` does."""
    everyone = np.arange(len(cells.claim_offsets) - 1)
    try:
        return FittingScore(everyone, score_cells(cells, policy), {})
    except PolicyError:
        return _score_some(cells, policy)


def _score_some(cells: Cells, policy: Policy) -> FittingScore:
    remaining = np.arange(len(cells.claim_offsets) - 1)
    checks: dict[Misfit, Callable[[Cells, Policy], BoolArray]] = {
        Misfit.GRANULARITIES_MISSING: _claims_without_granularity,
        Misfit.SPANS_NOT_SCORED: unscored_claims,
    }
    misfits = {}
    for misfit, check in checks.items():
        is_hit = _any_within(check(cells, policy), cells.claim_offsets)
        misfits[misfit] = remaining[is_hit]
        remaining = remaining[~is_hit]
        cells = cells.of_audits(np.flatnonzero(~is_hit))
    return FittingScore(remaining, score_cells(cells, policy), misfits)


def _claims_without_granularity(cells: Cells, policy: Policy) -> BoolArray:
    if policy.granularities is None:
        return np.zeros(len(cells.structure_of_claim), dtype=bool)
    lacks = [not chunks.has_any(policy.granularities) for chunks in cells.chunk_spans]
    return np.array(lacks, dtype=bool)[cells.structure_of_claim]


def _any_within(flags: BoolArray, offsets: IntArray) -> BoolArray:
    """Tell which segments hold a true flag; an empty one holds none."""
    before = offsets_of(flags)
    return before[offsets[1:]] > before[offsets[:-1]]
