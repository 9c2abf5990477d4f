"""From claims to responses: one score for each of many audits, in one order-independent pass."""

from __future__ import annotations

import numpy as np

from halldetect.scoring.policy import Aggregation, Policy
from halldetect.scoring.segments import (
    BoolArray,
    FloatArray,
    IntArray,
    check_offsets,
    first_maxima,
    sorted_within,
)

FLAGGED_WEIGHT = 2.0
"""Weight of a claim with a name, a number or a date, against 1 of any other."""


def claim_weights(flagged: BoolArray) -> FloatArray:
    """Return the weight of each claim under ``weighted``, shape ``(n_claims,)``."""
    return np.where(flagged, FLAGGED_WEIGHT, 1.0)


def aggregate_responses(
    values: FloatArray, offsets: IntArray, weights: FloatArray, policy: Policy
) -> FloatArray:
    """Return the response score of every audit: 1 minus the aggregate of its claim values.

    ``fedscore`` is the FEDscore of arXiv 2608.05823: 1 minus the geometric mean, exactly 1 when
    any value is at or below the margin. Elsewhere negative values count as 0. Terms are sorted
    within an audit before they are summed, so the order of claims changes no bit of the result,
    and nor do the audits that share the call.

    Parameters
    ----------
    values : float64 array, shape (n_claims,)
        Claim values of all audits end to end, from -1 to 1.
    offsets : int64 array, shape (n_audits + 1,)
        Audit ``i`` has the claims from ``offsets[i]`` up to ``offsets[i + 1]``.
    weights : float64 array, shape (n_claims,)
        Positive; read by ``weighted`` alone.
    policy : Policy
        Aggregation and margin.

    Returns
    -------
    float64 array, shape (n_audits,)
        From 0 to 1, higher means more likely hallucinated; NaN for an audit without claims.

    Raises
    ------
    ValueError
        A value is not between -1 and 1, or the arrays do not fit together.
    """
    check_offsets(offsets, len(values), "claim offsets")
    if weights.shape != values.shape:
        raise ValueError(f"{len(values)} claim values need as many weights, not {len(weights)}")
    if not np.all(np.abs(values) <= 1):
        raise ValueError("claim values must lie between -1 and 1")
    scores = np.full(len(offsets) - 1, np.nan)
    counts = np.diff(offsets)
    has_claims = counts > 0
    if has_claims.any():
        # Audits without claims hold no values, so the others still lie end to end.
        starts, sizes = offsets[:-1][has_claims], counts[has_claims]
        scores[has_claims] = 1.0 - _aggregate(values, starts, sizes, weights, policy)
    return scores


def deciding_claims(values: FloatArray, offsets: IntArray, policy: Policy) -> IntArray | None:
    """Return the claim that decided each audit: the lowest value, of equal ones the first.

    Parameters
    ----------
    values, offsets, policy
        As for `aggregate_responses`.

    Returns
    -------
    int64 array, shape (n_audits,), or None
        Counted from each audit's first claim; -1 for an audit without claims. None under the
        averaging aggregations, where no single claim decides.
    """
    if policy.aggregation not in (Aggregation.FEDSCORE, Aggregation.MIN):
        return None
    deciding = np.full(len(offsets) - 1, -1, dtype=np.int64)
    has_claims = np.diff(offsets) > 0
    filled = np.append(offsets[:-1][has_claims], len(values))
    deciding[has_claims] = first_maxima(-values, filled)[1]
    return deciding


def _aggregate(
    values: FloatArray, starts: IntArray, sizes: IntArray, weights: FloatArray, policy: Policy
) -> FloatArray:
    if policy.aggregation is Aggregation.FEDSCORE:
        return _geometric_mean(values, starts, sizes, policy.margin)
    positive = np.maximum(values, 0.0)
    if policy.aggregation is Aggregation.MIN:
        return np.minimum.reduceat(positive, starts)
    if policy.aggregation is Aggregation.WEIGHTED:
        total = _ordered_sum(weights * positive, starts, sizes)
        return total / _ordered_sum(weights, starts, sizes)
    return _ordered_sum(positive, starts, sizes) / sizes


def _geometric_mean(
    values: FloatArray, starts: IntArray, sizes: IntArray, margin: float
) -> FloatArray:
    above = values > margin
    logs = np.log(np.where(above, values, 1.0))
    with np.errstate(under="ignore"):
        means = np.exp(_ordered_sum(logs, starts, sizes) / sizes)
    return np.where(np.logical_and.reduceat(above, starts), means, 0.0)


def _ordered_sum(terms: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
    return np.add.reduceat(sorted_within(terms, sizes), starts)
