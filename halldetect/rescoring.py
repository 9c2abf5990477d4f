"""Score a stored trail again under another policy: no model, only the probabilities it kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from halldetect.errors import InputError
from halldetect.scoring.matrix import ChunkSpans, ProbabilityMatrix, ScoringInput
from halldetect.scoring.policy import Policy
from halldetect.scoring.score import AuditScore, score_audits
from halldetect.trail import AuditResult, Matrix


def rescore(result: AuditResult, policy: Policy) -> AuditScore:
    """Score one completed audit under `policy`.

    Raises
    ------
    InputError
        When the audit failed: it has no probabilities.
    PolicyError
        When the policy reads granularities that were not stored.
    """
    return score_audits([scoring_input(result)], policy).audit(0)


def scoring_input(result: AuditResult) -> ScoringInput:
    """Read back what a trail's score was computed from.

    Raises
    ------
    InputError
        When the audit failed: it has no probabilities.
    """
    if result.matrix is None:
        raise InputError(f"audit {result.id} failed and has no probabilities: {result.error}")
    matrix = result.matrix
    shape = (len(result.claims), len(matrix.spans))
    flags = [c.flags.name or c.flags.number or c.flags.date for c in result.claims]
    return ScoringInput(
        ProbabilityMatrix(
            _array(matrix.entailment, shape),
            _array(matrix.neutral, shape),
            _array(matrix.contradiction, shape),
        ),
        np.array(flags, dtype=bool),
        _chunks(matrix),
    )


def _array(rows: Sequence[Sequence[float | None]], shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.array(rows, dtype=np.float32).reshape(shape)  # None becomes NaN


def _chunks(matrix: Matrix) -> ChunkSpans:
    sizes = [len(chunk.spans) for chunk in matrix.chunks]
    return ChunkSpans(
        granularity=np.array([chunk.granularity for chunk in matrix.chunks], dtype=np.int64),
        offsets=np.cumsum([0, *sizes], dtype=np.int64),
        indices=np.array([span for chunk in matrix.chunks for span in chunk.spans], dtype=np.int64),
        n_spans=len(matrix.spans),
    )
