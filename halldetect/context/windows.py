"""Windows over a source that fit the encoder: whole sentences, and tokens where one is too long."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from halldetect.spans import Span

# Neighbouring windows share this part of their room, so that evidence which straddles a border
# stands whole in one of them.
_OVERLAP = 0.25


@dataclass(frozen=True, slots=True, order=True)
class TokenRange:
    """Half-open range of a source's tokens."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SourceTokens:
    """Tokens of a source, sentence by sentence.

    Parameters
    ----------
    ids : int32 array (n_tokens,)
        Token ids, without special tokens.
    starts, ends : int32 array (n_tokens,)
        Character offsets of every token in the source.
    sentence_offsets : int64 array (n_sentences + 1,)
        Where each sentence's tokens begin.
    unknown : int
        Tokens that the model's vocabulary does not know: text the encoder cannot read.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    sentence_offsets: NDArray[np.int64]
    unknown: int

    def count(self, first: int, last: int) -> int:
        """Return the number of tokens of sentences `first` to `last` (exclusive)."""
        return int(self.sentence_offsets[last] - self.sentence_offsets[first])

    def characters(self, tokens: TokenRange, sentences: Sequence[Span]) -> Span:
        """Return the characters that a range of tokens stands for.

        Where a range begins or ends with a sentence, so does the span, even if the tokenizer
        dropped characters at its edge.
        """
        first = int(np.searchsorted(self.sentence_offsets, tokens.start, side="right")) - 1
        last = int(np.searchsorted(self.sentence_offsets, tokens.end, side="left")) - 1
        at_start = self.sentence_offsets[first] == tokens.start
        at_end = self.sentence_offsets[last + 1] == tokens.end
        return Span(
            sentences[first].start if at_start else int(self.starts[tokens.start]),
            sentences[last].end if at_end else int(self.ends[tokens.end - 1]),
        )


class Tokenized(Protocol):
    """A text's tokens, as the NLI model's tokenizer gives them."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """Token ids."""

    @property
    def starts(self) -> NDArray[np.int32]:
        """First character of every token."""

    @property
    def ends(self) -> NDArray[np.int32]:
        """One past the last character of every token."""

    @property
    def unknown(self) -> int:
        """Tokens that the vocabulary lacks."""


def join_sentence_tokens(sentences: Sequence[Span], tokenized: Sequence[Tokenized]) -> SourceTokens:
    """Join the tokens of a source's sentences, with offsets into the source.

    Parameters
    ----------
    sentences : sequence of Span
        At least one sentence.
    tokenized : sequence of Tokenized
        Tokens of the same sentences, offsets counted from each sentence's start.
    """
    pairs = list(zip(sentences, tokenized, strict=True))
    return SourceTokens(
        ids=np.concatenate([tokens.ids for _, tokens in pairs]),
        starts=np.concatenate([tokens.starts + sentence.start for sentence, tokens in pairs]),
        ends=np.concatenate([tokens.ends + sentence.start for sentence, tokens in pairs]),
        sentence_offsets=np.cumsum([0, *(len(tokens.ids) for _, tokens in pairs)], dtype=np.int64),
        unknown=sum(tokens.unknown for _, tokens in pairs),
    )


def window_grid(tokens: SourceTokens, room: int) -> list[TokenRange]:
    """Cover a whole source with overlapping windows of at most `room` tokens.

    Windows are made of whole sentences; a sentence that does not fit is windowed by tokens. The
    chunks of all granularities share this one grid, so that a long source is read a few times
    and not once a granularity.

    Returns
    -------
    list of TokenRange
        Ascending in both start and end.
    """
    offsets = tokens.sentence_offsets
    count = len(offsets) - 1
    windows: list[TokenRange] = []
    first = 0
    while first < count:
        last = int(bisect_right(offsets, offsets[first] + room)) - 1
        if last == first:
            windows.extend(_windows_by_tokens(tokens, first, room))
            first += 1
            continue
        windows.append(TokenRange(int(offsets[first]), int(offsets[last])))
        first = _next_window_start(tokens, first, last, room)
    return windows


def _next_window_start(tokens: SourceTokens, first: int, last: int, room: int) -> int:
    """Step back from sentence `last` as far as the overlap allows and `last` still fits."""
    offsets = tokens.sentence_offsets
    if last == len(offsets) - 1 or tokens.count(last, last + 1) > room:
        return last
    earliest = max(offsets[last] - int(room * _OVERLAP), offsets[last + 1] - room)
    return max(int(bisect_left(offsets, earliest)), first + 1)


def _windows_by_tokens(tokens: SourceTokens, sentence: int, room: int) -> list[TokenRange]:
    """Window one over-long sentence by tokens, at word borders where there are any near."""
    first, last = (int(o) for o in tokens.sentence_offsets[sentence : sentence + 2])
    overlap = int(room * _OVERLAP)
    windows: list[TokenRange] = []
    start = first
    while True:
        end = min(start + room, last)
        if end < last:
            end = _word_border(tokens, end, end - overlap // 2)
        windows.append(TokenRange(start, end))
        if end == last:
            return windows
        start = _word_border(tokens, end - overlap, max(start + 1, end - 2 * overlap))


def _word_border(tokens: SourceTokens, position: int, earliest: int) -> int:
    """Return the last word border in ``[earliest, position]``, or `position` without one."""
    gaps = tokens.starts[earliest : position + 1] > tokens.ends[earliest - 1 : position]
    borders = np.flatnonzero(gaps)
    return earliest + int(borders[-1]) if len(borders) else position


def cover_with_windows(
    tokens: SourceTokens, grid: Sequence[TokenRange], first: int, last: int, room: int
) -> list[TokenRange]:
    """Return the token ranges that cover sentences `first` to `last` (exclusive).

    Returns
    -------
    list of TokenRange
        One range where the sentences fit together; else the grid's windows, clipped to the
        sentences, without those that lie inside another.
    """
    start, end = (int(tokens.sentence_offsets[border]) for border in (first, last))
    if end - start <= room:
        return [TokenRange(start, end)]
    begin = bisect_right(grid, start, key=lambda window: window.end)
    stop = bisect_left(grid, end, key=lambda window: window.start)
    clipped = [
        TokenRange(max(window.start, start), min(window.end, end)) for window in grid[begin:stop]
    ]
    kept: list[TokenRange] = []
    for window in clipped:
        if kept and window.end <= kept[-1].end:
            continue
        if kept and window.start <= kept[-1].start:
            kept.pop()
        kept.append(window)
    return kept
