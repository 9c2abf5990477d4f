"""Span tables: stored when first seen, read back as spans, chunks and the names of spans."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.models import SpanTable
from halldetect.sources import PreparedSource
from halldetect.spans import Span
from halldetect.trail import ChunkTrail


@dataclass(frozen=True, slots=True)
class SpanKey:
    """What the spans of a document depend on, beside the document.

    Parameters
    ----------
    splitter : str
        Which rules found the sentences.
    tokenizer : str
        Digest of the encoder's tokenizer.
    token_limit : int
        Most tokens of a pair.
    """

    splitter: str
    tokenizer: str
    token_limit: int


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


def span_table_id(session: Session, document_id: int, source: PreparedSource, key: SpanKey) -> int:
    """Return the row of a document's spans, stored when first seen."""
    where = {
        "document_id": document_id,
        "splitter": key.splitter,
        "tokenizer": key.tokenizer,
        "token_limit": key.token_limit,
    }
    # Locked, so that retention leaves it alone until the audit refers to it.
    found = select(SpanTable.id).filter_by(**where).with_for_update(key_share=True)
    stored = session.scalar(found)
    if stored is not None:
        return stored
    library = source.library
    session.execute(
        insert(SpanTable)
        .values(
            **where,
            starts=[span.start for span in library.spans],
            ends=[span.end for span in library.spans],
            chunk_granularity=library.chunk_granularity.tolist(),
            chunk_offsets=library.chunk_span_offsets.tolist(),
            chunk_spans=library.chunk_span_indices.tolist(),
            sentences=source.sentences,
            unreadable_sentences=source.unreadable_sentences,
            tokens=len(library.tokens.ids),
            unknown_tokens=library.tokens.unknown,
            windowed_chunks=library.windowed_chunks,
        )
        .on_conflict_do_nothing()
    )
    return session.scalars(found).one()
