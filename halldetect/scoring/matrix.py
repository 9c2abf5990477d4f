"""What is scored: probabilities of claims against spans, and which chunks the spans make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halldetect.errors import PolicyError, VerificationError
from halldetect.scoring.segments import BoolArray, IntArray, check_offsets

ProbabilityArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityMatrix:
    """One audit's probabilities: every claim (row) against every distinct span (column).

    A cell that pre-selection skipped is NaN in all three arrays. The numbers themselves are
    checked when they are scored, for many audits at once.

    Parameters
    ----------
    entailment, neutral, contradiction : float32 array, shape (n_claims, n_spans)
        P(E), P(N), P(C) of (span, claim) pairs; each scored cell sums to 1.

    Raises
    ------
    VerificationError
        The three differ in shape, or are no float32 matrices.
    """

    entailment: ProbabilityArray
    neutral: ProbabilityArray
    contradiction: ProbabilityArray

    def __post_init__(self) -> None:
        arrays = (self.entailment, self.neutral, self.contradiction)
        if any(array.ndim != 2 or array.dtype != np.float32 for array in arrays):
            raise VerificationError("probabilities must be float32 matrices of claims by spans")
        if len({array.shape for array in arrays}) > 1:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise VerificationError(f"E, N and C must be of one shape, not {shapes}")

    @property
    def n_claims(self) -> int:
        """Number of rows."""
        return int(self.entailment.shape[0])

    @property
    def n_spans(self) -> int:
        """Number of columns."""
        return int(self.entailment.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSpans:
    """Which spans make up which chunk of one source, and at which granularity.

    Parameters
    ----------
    granularity : int array, shape (n_chunks,)
        Granularity of each chunk.
    offsets : int array, shape (n_chunks + 1,)
        Chunk ``k`` consists of the spans ``indices[offsets[k]:offsets[k + 1]]``, at least one.
    indices : int array, shape (offsets[-1],)
        Span numbers, from 0 to ``n_spans - 1``.
    n_spans : int
        Number of distinct spans of the source.

    Raises
    ------
    ValueError
        The arrays do not fit together.
    """

    granularity: IntArray
    offsets: IntArray
    indices: IntArray
    n_spans: int

    def __post_init__(self) -> None:
        for name in ("granularity", "offsets", "indices"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        check_offsets(self.offsets, len(self.indices), "chunk offsets")
        if len(self.offsets) != len(self.granularity) + 1 or np.any(np.diff(self.offsets) == 0):
            raise ValueError("every chunk needs a granularity and at least one span")
        if len(self.indices) and not 0 <= self.indices.min() <= self.indices.max() < self.n_spans:
            raise ValueError(f"span numbers of chunks must lie between 0 and {self.n_spans - 1}")

    def has_any(self, granularities: Iterable[int]) -> bool:
        """Tell whether any chunk is of one of the given granularities."""
        return bool(np.isin(self.granularity, list(granularities)).any())

    def span_mask(self, granularities: Iterable[int] | None) -> BoolArray:
        """Tell which spans belong to a chunk of the given granularities.

        Parameters
        ----------
        granularities : iterable of int or None
            None stands for all; those that this source does not have are passed over.

        Returns
        -------
        bool array, shape (n_spans,)

        Raises
        ------
        PolicyError
            The source has chunks, and none of them at any of these granularities.
        """
        if granularities is None:
            return np.ones(self.n_spans, dtype=bool)
        wanted = sorted(granularities)
        chosen = np.isin(self.granularity, wanted)
        if len(chosen) and not chosen.any():
            stored = ", ".join(map(str, np.unique(self.granularity)))
            raise PolicyError(
                f"the policy reads granularities {', '.join(map(str, wanted))}, "
                f"of which the source has none; it has {stored}"
            )
        mask = np.zeros(self.n_spans, dtype=bool)
        mask[self.indices[np.repeat(chosen, np.diff(self.offsets))]] = True
        return mask

    def finest_span_mask(self) -> BoolArray:
        """Tell which spans belong to a chunk of the finest granularity, bool array (n_spans,)."""
        if len(self.granularity) == 0:
            return np.ones(self.n_spans, dtype=bool)
        return self.span_mask([int(self.granularity.max())])


@dataclass(frozen=True, slots=True, eq=False)
class ScoringInput:
    """All that scoring needs to know of one audit.

    Parameters
    ----------
    matrix : ProbabilityMatrix
        Claims by spans.
    flagged : bool array, shape (n_claims,)
        True for a claim with a name, a number or a date: it counts twice when weighted.
    chunks : ChunkSpans
        How the spans make up chunks; audits of one source should share the object.

    Raises
    ------
    ValueError
        The number of claims or spans differs between the parts.
    """

    matrix: ProbabilityMatrix
    flagged: BoolArray
    chunks: ChunkSpans

    def __post_init__(self) -> None:
        object.__setattr__(self, "flagged", np.asarray(self.flagged, dtype=bool))
        if self.flagged.shape != (self.matrix.n_claims,):
            raise ValueError(
                f"{self.matrix.n_claims} claims need as many flags, not {self.flagged.shape}"
            )
        if self.chunks.n_spans != self.matrix.n_spans:
            raise ValueError(
                f"the matrix has {self.matrix.n_spans} spans, the chunks {self.chunks.n_spans}"
            )
