"""Finding the words of a proposed claim in a sentence, in order and in their roles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from halldetect.claims.meaning_words import BE_FORMS, COORDINATORS
from halldetect.claims.tokens import Break, Token

_LARGEST_SEARCH = 64  # places at which a line may start; a sentence that repeats more is a list


@dataclass(frozen=True, slots=True)
class IndexedSentence:
    """A sentence's words, with the places of each.

    Parameters
    ----------
    tokens : tuple of Token
        All words, in order.
    places : dict of str to list of int
        Positions of each key, increasing; free words and negations are left out.
    """

    tokens: tuple[Token, ...]
    places: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, tokens: tuple[Token, ...]) -> IndexedSentence:
        """Index `tokens`."""
        places: dict[str, list[int]] = {}
        for position in compared(tokens):
            places.setdefault(tokens[position].key, []).append(position)
        return cls(tokens, places)


def compared(tokens: Sequence[Token]) -> list[int]:
    """Return the positions of the words that must be found: all but free words and negations."""
    return [i for i, token in enumerate(tokens) if not token.is_free and not token.is_negation]


def alignments(line: Sequence[Token], sentence: IndexedSentence) -> Iterator[dict[int, int]]:
    """Yield the ways to find all compared words of `line` in order, the tightest first."""
    wanted = compared(line)
    if not wanted:
        return
    found: list[tuple[int, dict[int, int]]] = []
    for start in sentence.places.get(line[wanted[0]].key, [])[:_LARGEST_SEARCH]:
        aligned = _align_from(start, wanted, line, sentence)
        if aligned is None:
            break  # a later start finds no more than an earlier one
        found.append((aligned[wanted[-1]] - start, aligned))
    found.sort(key=lambda item: item[0])
    yield from (aligned for _, aligned in found)


def _align_from(
    start: int, wanted: Sequence[int], line: Sequence[Token], sentence: IndexedSentence
) -> dict[int, int] | None:
    aligned = {wanted[0]: start}
    position = start
    for index in wanted[1:]:
        places = sentence.places.get(line[index].key, [])
        following = bisect_right(places, position)
        if following == len(places):
            return None
        position = places[following]
        aligned[index] = position
    return aligned


def dropped_role(sentence: Sequence[Token], kept: Sequence[int]) -> str | None:
    """Return the word whose loss changes who does what, or None.

    Words may be left out at the ends of a clause or inside it, but not so that the rest reads
    otherwise: a passive turned active ("was criticised by"), a subject taken from another clause,
    a name taken out of its phrase ("opponents of Ortiz resigned").

    Parameters
    ----------
    sentence : sequence of Token
        Words of the sentence.
    kept : sequence of int
        Positions the claim keeps, increasing.
    """
    opening = _opening_role(sentence, kept[0])
    if opening is not None:
        return opening
    for position, following in zip(kept, [*kept[1:], -1], strict=True):
        attached = _lost_attachment(sentence, position, following)
        if attached is not None:
            return attached
    for left, right in pairwise(kept):
        role = _role_in_gap(sentence, left, right)
        if role is not None:
            return role
    return None


def _opening_role(sentence: Sequence[Token], first: int) -> str | None:
    """Return the preposition or auxiliary that the first kept word hangs on."""
    position = first
    if sentence[first].is_number and first > 0 and sentence[first - 1].is_unit:
        return sentence[first - 1].word
    while position > 0 and sentence[position].before is Break.NONE:
        position -= 1
        token = sentence[position]
        if not token.is_free:
            is_bound = not token.is_content and token.word not in COORDINATORS
            return token.word if is_bound else None
    return None


def _lost_attachment(sentence: Sequence[Token], position: int, following: int) -> str | None:
    """Return the unit of a number, or the thing owned by a name, that is not kept."""
    token = sentence[position]
    if position + 1 < len(sentence) and following != position + 1:
        after = sentence[position + 1]
        if token.is_number and after.is_unit and after.before is Break.NONE:
            return after.word
        if token.is_possessive and not after.is_free and after.before is Break.NONE:
            return after.word
    return None


def _role_in_gap(sentence: Sequence[Token], left: int, right: int) -> str | None:
    gap = [i for i in range(left + 1, right) if not sentence[i].is_negation]
    dropped = [i for i in gap if not sentence[i].is_free]
    if not dropped or _is_parenthesis(sentence, left, right):
        return None
    if sentence[left].clause != sentence[right].clause:
        return sentence[dropped[-1]].word
    for position in dropped:
        if sentence[position].word in BE_FORMS or sentence[position].word == "by":
            return sentence[position].word
    if not sentence[dropped[-1]].is_content:
        return sentence[dropped[-1]].word
    return _second_subject(sentence, gap)


def _is_parenthesis(sentence: Sequence[Token], left: int, right: int) -> bool:
    """Tell whether commas or brackets set off exactly what was left out."""
    opens = sentence[left + 1].before is Break.COMMA
    resumes = right
    while resumes > left + 1 and sentence[resumes].before is Break.NONE:
        if sentence[resumes - 1].is_content:
            return False
        resumes -= 1
    strong = any(sentence[i].before is Break.CLAUSE for i in range(left + 1, right + 1))
    return opens and not strong and resumes > left + 1


def _second_subject(sentence: Sequence[Token], gap: Sequence[int]) -> str | None:
    """Return a word that shows another subject among the words left out."""
    has_content = False
    for place, position in enumerate(gap):
        token = sentence[position]
        if token.word in COORDINATORS:
            follows = any(sentence[i].is_content for i in gap[place + 1 :])
            if has_content and follows:
                return token.word
        elif token.is_content:
            before = sentence[position - 1]
            if token.is_name and has_content and before.is_content and not before.is_name:
                return token.word
            has_content = True
    return None
