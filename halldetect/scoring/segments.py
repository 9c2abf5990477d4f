"""Arithmetic over consecutive segments of one flat array: many audits in one numpy call.

A flat array of ``n`` values is cut by ``offsets`` (``n_segments + 1`` whole numbers, the first 0,
the last ``n``): segment ``i`` is ``values[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def offsets_of(counts: npt.ArrayLike) -> IntArray:
    """Return the offsets of segments with the given sizes, shape ``(n_segments + 1,)``."""
    sizes = np.asarray(counts, dtype=np.int64)
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def check_offsets(offsets: IntArray, length: int, name: str) -> None:
    """Check that `offsets` cuts an array of `length` values into consecutive segments.

    Raises
    ------
    ValueError
        It does not; the message starts with `name`.
    """
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != length:
        raise ValueError(f"{name} must be one-dimensional, start at 0 and end at {length}")
    if np.any(np.diff(offsets) < 0):
        raise ValueError(f"{name} must never decrease")


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Return ``starts[i], starts[i] + 1, ...`` (``counts[i]`` numbers) for every i, end to end."""
    offsets = offsets_of(counts)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)


def first_maxima(values: npt.NDArray[Any], offsets: IntArray) -> tuple[npt.NDArray[Any], IntArray]:
    """Find the largest value of every segment and where it first occurs.

    Parameters
    ----------
    values : array, shape (n,)
        No NaN among them.
    offsets : int64 array, shape (n_segments + 1,)
        No segment may be empty.

    Returns
    -------
    maxima : array, shape (n_segments,)
    positions : int64 array, shape (n_segments,)
        Counted from the start of each segment.
    """
    starts = offsets[:-1]
    if len(starts) == 0:
        return values[:0], starts
    maxima = np.maximum.reduceat(values, starts)
    hits = np.flatnonzero(values == np.repeat(maxima, np.diff(offsets)))
    # Every segment holds a hit, so the first one from its start on lies inside it.
    return maxima, hits[np.searchsorted(hits, starts)] - starts


def sorted_within(values: FloatArray, counts: IntArray) -> FloatArray:
    """Sort every segment by itself, ascending; `counts` are the segment sizes."""
    segment = np.repeat(np.arange(len(counts)), counts)
    return values[np.lexsort((values, segment))]
