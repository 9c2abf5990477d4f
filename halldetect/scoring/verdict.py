"""Verdicts on claims and labels of responses."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from halldetect.scoring.evidence import BestEvidence
from halldetect.scoring.policy import Policy
from halldetect.scoring.segments import BoolArray, FloatArray


class Verdict(StrEnum):
    """What the source says about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


class Label(StrEnum):
    """What the response as a whole is called."""

    FAITHFUL = "faithful"
    HALLUCINATED = "hallucinated"


def supported_and_contradicted(
    best: BestEvidence, values: FloatArray, policy: Policy
) -> tuple[BoolArray, BoolArray]:
    """Tell which claims are supported and which contradicted; the rest are unsupported.

    A claim is contradicted when its best C reaches the contradiction threshold and lies above its
    best E; otherwise it is supported when its best E reaches the entailment threshold and its
    value lies above the margin.

    Parameters
    ----------
    best : BestEvidence
        Of n claims.
    values : float64 array, shape (n_claims,)
        Claim values under the same policy.
    policy : Policy
        Thresholds and margin.

    Returns
    -------
    supported, contradicted : bool array, shape (n_claims,)
        Never both true.
    """
    contradicted = (best.contradiction >= policy.contradiction_threshold) & (
        best.contradiction > best.entailment
    )
    supported = (best.entailment >= policy.entailment_threshold) & (values > policy.margin)
    return supported & ~contradicted, contradicted


def is_hallucinated(response_scores: FloatArray, policy: Policy) -> BoolArray:
    """Tell which response scores are labelled hallucinated; a missing one (NaN) has no label."""
    return response_scores >= policy.response_threshold


def label_of(response_score: float | None, policy: Policy) -> Label | None:
    """Return the label of a response score; a response without a score has none."""
    if response_score is None:
        return None
    if np.isnan(response_score):
        raise ValueError("a missing response score is None, not NaN")
    [hallucinated] = is_hallucinated(np.array([response_score]), policy)
    return Label.HALLUCINATED if hallucinated else Label.FAITHFUL
