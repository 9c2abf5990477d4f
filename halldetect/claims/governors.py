"""Words of a sentence that a claim may not leave out, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from halldetect.claims.meaning_words import word_set
from halldetect.claims.tokens import Token

_GOVERNORS = word_set(
    """
    or either except excluding minus zero yet
    say says said claim claims claimed allege alleges alleged argue argues argued
    believe believes believed think thinks thought suggest suggests suggested according
    write writes wrote told tells insist insists insisted state states stated announced
    pretend pretends pretended imagine imagines imagined lied dreamed
    myth myths rumour rumours rumor rumors evidence charges accusation accusations
    novel film story legend fiction
    """
)
"""Alternatives, exceptions, signs, and words that make the rest someone's saying or a fiction."""

_PARTICLES = word_set("down off out up away")
_RELATIVES = word_set("who whom which that whose")


def dropped_governor(text: str, tokens: Sequence[Token], kept: Collection[int]) -> str | None:
    """Return a word without which the kept words assert something else, or None.

    Parameters
    ----------
    text : str
        The response that the spans of `tokens` point into.
    tokens : sequence of Token
        Words of one sentence.
    kept : collection of int
        Positions of the words that a claim repeats.
    """
    dropped = [position for position in range(len(tokens)) if position not in kept]
    for position in dropped:
        if tokens[position].word in _GOVERNORS:
            return tokens[position].word
        if _is_part_of_kept_word(text, tokens, kept, position):
            return tokens[position].word
        if tokens[position].word in _PARTICLES and position - 1 in kept:
            return tokens[position].word
        if _is_clause_without_its_head(tokens, kept, position):
            return tokens[position].word
    return None


def _is_part_of_kept_word(
    text: str, tokens: Sequence[Token], kept: Collection[int], position: int
) -> bool:
    """Tell whether only a hyphen, a dash or a slash ties the word to one that is kept."""
    for first, second in ((position - 1, position), (position, position + 1)):
        if first < 0 or second >= len(tokens):
            continue
        other = first if second == position else second
        between = text[tokens[first].span.end : tokens[second].span.start]
        if other in kept and len(between) == 1 and between in "-‐‑–/":
            return True
    return False


def _is_clause_without_its_head(
    tokens: Sequence[Token], kept: Collection[int], position: int
) -> bool:
    """Tell whether a relative or that-clause is kept whose head, right before it, is not."""
    if tokens[position].word not in _RELATIVES or position == 0:
        return False
    return position - 1 not in kept and any(other > position for other in kept)
