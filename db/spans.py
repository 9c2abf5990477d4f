"""A stored span table, read back: spans, chunks, and which chunk a span is named by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from db.models import SpanTable
from halldetect.spans import Span
from halldetect.trail import ChunkTrail


@dataclass(frozen=True, slots=True)
class StoredSpans:
    """The spans of one document, as the encoder read them.

    Parameters
    ----------
    spans : list of Span
        In reading order.
    chunks : list of ChunkTrail
        By granularity and index, each with the numbers of its spans.
    """

    spans: list[Span]
    chunks: list[ChunkTrail]

    @classmethod
    def of(cls, row: SpanTable) -> StoredSpans:
        """Read a row.

        Raises
        ------
        ValueError
            When chunks name spans that the row does not have.
        """
        if not all(0 <= span < len(row.starts) for span in row.chunk_spans):
            raise ValueError("chunks name spans that there are not")
        chunks = []
        indices: dict[int, int] = {}
        for granularity, (first, last) in zip(
            row.chunk_granularity, pairwise(row.chunk_offsets), strict=True
        ):
            index = indices.get(granularity, 0)
            indices[granularity] = index + 1
            chunks.append(
                ChunkTrail(granularity=granularity, index=index, spans=row.chunk_spans[first:last])
            )
        return cls([Span(*pair) for pair in zip(row.starts, row.ends, strict=True)], chunks)

    def chunk_names(self) -> list[str]:
        """Return for every span the finest chunk it belongs to, as ``m/index``."""
        names = [""] * len(self.spans)
        for chunk in self.chunks:
            for span in chunk.spans:
                names[span] = f"{chunk.granularity}/{chunk.index}"
        return names
