"""Chunks of a source at every granularity, over the distinct spans that cover them.

Phase II of arXiv 2608.05823 (section 3.2) cuts the source into m groups of consecutive sentences
for m = 1, 2, 4, 8, 16. Two things are added. Granularities repeat each other's text, so every
distinct span is scored once and a chunk only refers to spans. And an encoder has a limit, so a
chunk that does not fit is covered by overlapping windows that do: nothing is ever cut off.

The tokens of a span are those of its sentences, one after the other. A source is therefore
tokenised once, whatever the number of granularities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halldetect.context.windows import SourceTokens, TokenRange, cover_with_windows, window_grid
from halldetect.spans import Span

BASE_GRANULARITIES = (1, 2, 4, 8, 16)  # paper section 3.2
HYPOTHESIS_TOKENS = 96  # kept free for the claim in every pair

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Group `index` of the source's sentences at granularity `granularity`."""

    granularity: int
    index: int


@dataclass(frozen=True, slots=True)
class ContextLibrary:
    """Distinct spans of one source and the chunks made of them.

    Parameters
    ----------
    spans : tuple of Span
        Distinct spans, sorted by (start, end); characters of the source.
    token_ranges : tuple of TokenRange
        For every span its tokens in `tokens`.
    tokens : SourceTokens
        The source's tokens, sentence by sentence.
    chunks : tuple of Chunk
        All chunks, by granularity and then index.
    chunk_span_offsets : int64 array (n_chunks + 1,)
        Where each chunk's spans begin in `chunk_span_indices`.
    chunk_span_indices : int64 array
        Indices into `spans`.
    windowed_chunks : int
        Chunks that did not fit the encoder and are covered by several windows.
    """

    spans: tuple[Span, ...]
    token_ranges: tuple[TokenRange, ...]
    tokens: SourceTokens
    chunks: tuple[Chunk, ...]
    chunk_span_offsets: Indices
    chunk_span_indices: Indices
    windowed_chunks: int

    @property
    def granularities(self) -> tuple[int, ...]:
        """Granularities present, ascending."""
        return tuple(dict.fromkeys(chunk.granularity for chunk in self.chunks))

    @property
    def chunk_granularity(self) -> Indices:
        """Granularity of every chunk, int64 array (n_chunks,)."""
        return np.array([chunk.granularity for chunk in self.chunks], dtype=np.int64)

    def spans_of_chunk(self, number: int) -> Indices:
        """Return the indices of the spans that cover chunk `number`."""
        first, last = self.chunk_span_offsets[number : number + 2]
        return self.chunk_span_indices[first:last]

    def premise(self, span: int) -> NDArray[np.int32]:
        """Return the token ids of span number `span`, without special tokens."""
        token_range = self.token_ranges[span]
        return self.tokens.ids[token_range.start : token_range.end]

    def chunk_names(self) -> list[str]:
        """Return for every span the finest chunk it belongs to, as ``m/index``."""
        names = [""] * len(self.spans)
        for number, chunk in enumerate(self.chunks):
            for span in self.spans_of_chunk(number):
                names[span] = f"{chunk.granularity}/{chunk.index}"
        return names


def build_context_library(
    sentences: Sequence[Span], tokens: SourceTokens, max_premise_tokens: int
) -> ContextLibrary:
    """Cut a source into chunks at every granularity.

    Parameters
    ----------
    sentences : sequence of Span
        Sentences of the source, in order; at least one.
    tokens : SourceTokens
        Tokens of the same sentences.
    max_premise_tokens : int
        Most tokens of a span: the encoder's limit less special tokens and the claim's reserve.

    Returns
    -------
    ContextLibrary
        With granularities 1, 2, 4, 8, 16, and doubled from there until the finest chunks fit
        (or are single sentences).
    """
    grid = window_grid(tokens, max_premise_tokens)
    ranges: dict[tuple[int, int], int] = {}
    chunks: list[Chunk] = []
    members: list[list[int]] = []
    windowed = 0
    for granularity, groups in _granularities(len(sentences), tokens, max_premise_tokens):
        for index, (first, last) in enumerate(groups):
            covering = cover_with_windows(tokens, grid, first, last, max_premise_tokens)
            windowed += len(covering) > 1
            chunks.append(Chunk(granularity, index))
            members.append([ranges.setdefault((r.start, r.end), len(ranges)) for r in covering])
    return _assemble(sentences, tokens, ranges, chunks, members, windowed)


def chunk_sentences(sentence_count: int, granularity: int) -> list[tuple[int, int]]:
    """Group sentences into consecutive chunks of ``ceil(n / m)`` (paper section 3.2).

    Returns
    -------
    list of (int, int)
        Half-open ranges of sentence numbers; fewer than `granularity` where sentences run out.
    """
    size = -(-sentence_count // granularity)
    return [(first, min(first + size, sentence_count)) for first in range(0, sentence_count, size)]


def _granularities(
    sentence_count: int, tokens: SourceTokens, max_premise_tokens: int
) -> list[tuple[int, list[tuple[int, int]]]]:
    result = [(m, chunk_sentences(sentence_count, m)) for m in BASE_GRANULARITIES]
    granularity, groups = result[-1]
    while any(
        last - first > 1 and tokens.count(first, last) > max_premise_tokens
        for first, last in groups
    ):
        granularity *= 2
        groups = chunk_sentences(sentence_count, granularity)
        result.append((granularity, groups))
    return result


def _assemble(
    sentences: Sequence[Span],
    tokens: SourceTokens,
    ranges: dict[tuple[int, int], int],
    chunks: list[Chunk],
    members: list[list[int]],
    windowed: int,
) -> ContextLibrary:
    """Put the spans in reading order and flatten the chunks' members."""
    found = list(ranges)
    spans = [tokens.characters(TokenRange(*key), sentences) for key in found]
    order = sorted(range(len(found)), key=lambda number: (spans[number], found[number]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    flat = [int(rank[number]) for group in members for number in group]
    return ContextLibrary(
        spans=tuple(spans[number] for number in order),
        token_ranges=tuple(TokenRange(*found[number]) for number in order),
        tokens=tokens,
        chunks=tuple(chunks),
        chunk_span_offsets=np.cumsum([0, *map(len, members)], dtype=np.int64),
        chunk_span_indices=np.array(flat, dtype=np.int64),
        windowed_chunks=windowed,
    )
