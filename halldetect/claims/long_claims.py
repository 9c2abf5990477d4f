"""Cutting a claim that is too long for the encoder into claims of its own; nothing is lost."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from halldetect.spans import Span

_CLAUSE_BREAK = re.compile(
    r"(?<=[,;:—.!?])\s+|\s+(?=(?:and|but|or|while|whereas|although|because|which|that)\b)"
)
_WORD_BREAK = re.compile(r"\s+")
_FIRST_GUESS = 64  # characters; doubled until the limit is passed


@dataclass(frozen=True, slots=True)
class PlacedText:
    """Text of a claim and where its words stand in the response.

    Parameters
    ----------
    text : str
        What the claim says.
    span : Span
        Where it stands.
    words : tuple of (int, Span)
        Offset of a word in `text` and its place in the response, in order; may be incomplete.
    """

    text: str
    span: Span
    words: tuple[tuple[int, Span], ...]


def pieces_of(
    claim: PlacedText, count_tokens: Callable[[str], int], max_tokens: int
) -> list[PlacedText]:
    """Cut `claim` into pieces of at most `max_tokens`, as long as the limit allows.

    Cuts fall between clauses, else between words; a single word over the limit is cut between
    characters. Joined, the pieces give the text again, save the whitespace at the cuts.

    Parameters
    ----------
    claim : PlacedText
        Any claim.
    count_tokens : callable
        Number of tokens of a text, not fewer for a longer one.
    max_tokens : int
        Limit; a single character is never cut, whatever it counts.

    Returns
    -------
    list of PlacedText
        `claim` alone when it fits.
    """
    if _fits(claim.text, count_tokens, max_tokens):
        return [claim]
    offsets = [offset for offset, _ in claim.words]
    return [
        _piece(claim, offsets, start, end)
        for start, end in _cuts(claim.text, count_tokens, max_tokens)
    ]


def _fits(text: str, count_tokens: Callable[[str], int], max_tokens: int) -> bool:
    return count_tokens(text) <= max_tokens


def _cuts(
    text: str, count_tokens: Callable[[str], int], max_tokens: int
) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        longest = _longest_fit(text, start, count_tokens, max_tokens)
        end = longest if longest == len(text) else _best_cut(text, start, longest)
        if end < len(text) and not _fits(text[start:end].strip(), count_tokens, max_tokens):
            end = longest
        yield start, end
        start = end
        while start < len(text) and text[start].isspace():
            start += 1


def _longest_fit(text: str, start: int, count_tokens: Callable[[str], int], max_tokens: int) -> int:
    """Return the furthest end that fits; the search never counts much more than one piece."""
    reach = _FIRST_GUESS
    while start + reach < len(text) and _fits(
        text[start : start + reach], count_tokens, max_tokens
    ):
        reach *= 2
    low, high = start + 1, min(start + reach, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(text[start:middle], count_tokens, max_tokens):
            low = middle
        else:
            high = middle - 1
    return low


def _best_cut(text: str, start: int, longest: int) -> int:
    for breaks in (_CLAUSE_BREAK, _WORD_BREAK):
        ends = [m.start() for m in breaks.finditer(text, start, longest + 1) if m.start() > start]
        if ends:
            return ends[-1]
    return longest


def _piece(claim: PlacedText, offsets: Sequence[int], start: int, end: int) -> PlacedText:
    is_inside_word = start > 0 and claim.text[start - 1 : start + 1].isalnum()
    first = bisect_right(offsets, start) - 1 if is_inside_word else bisect_left(offsets, start)
    inside = claim.words[max(first, 0) : bisect_right(offsets, end - 1)]
    text = claim.text[start:end].strip()
    return PlacedText(text, _span_of(claim, start, end, inside), ())


def _span_of(claim: PlacedText, start: int, end: int, inside: Sequence[tuple[int, Span]]) -> Span:
    if not inside:
        return claim.span
    first, last = inside[0][1].start, inside[-1][1].end
    if len(inside) == 1 and start > inside[0][0]:
        first = min(first + start - inside[0][0], last - 1)  # a word cut between characters
    if len(inside) == 1 and end - inside[0][0] < last - inside[0][1].start:
        last = max(inside[0][1].start + end - inside[0][0], first + 1)
    return Span(first, last)
