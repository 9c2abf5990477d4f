"""Words of a response or a proposed claim, in the form in which the copy check compares them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import IntEnum

from halldetect.claims.meaning_words import (
    CLAUSE_OPENERS,
    COORDINATORS,
    FREE,
    FUNCTION,
    NEGATIONS,
    SCALES,
)
from halldetect.spans import Span
from halldetect.text.function_words import NEGATIONS as ENGLISH_NEGATIONS
from halldetect.text.words import Word, words_of

_STRONG_MARKS = frozenset(";:—!?。！？；：")
_WEAK_MARKS = frozenset(',()[]|"“”„«»、，')
_POSSESSIVES = ("'s", "’s", "s'", "s’")


class Break(IntEnum):
    """What stands between a word and the word before it."""

    NONE = 0
    COMMA = 1  # or a bracket, a quotation mark, the edge of a table cell
    CLAUSE = 2  # stronger punctuation, a comma with a conjunction, or an opener such as "but"


@dataclass(frozen=True, slots=True)
class Token:
    """One word; a contraction ("can't") gives two with the same span.

    Parameters
    ----------
    key : str
        Equal for equal words; numbers compare by value.
    word : str
        The normalised word.
    span : Span
        Offsets into the raw text.
    is_name, is_number, is_negation, is_possessive : bool
        What kind of word it is.
    is_unit : bool
        A sign such as "%" or "€", or a scale such as "million".
    is_content : bool
        Coverage asks for the word.
    before : Break
        What separates it from the word before.
    clause : int
        Number of breaks before it.
    """

    key: str
    word: str
    span: Span
    is_name: bool
    is_number: bool
    is_negation: bool
    is_possessive: bool
    is_unit: bool
    is_content: bool
    before: Break
    clause: int

    @property
    def is_free(self) -> bool:
        """Whether a claim may drop or add the word."""
        return self.word in FREE and not self.is_number


def tokens_of(text: str, offset: int = 0) -> tuple[Token, ...]:
    """Return the words of `text`, marks at the start of lines left out.

    Parameters
    ----------
    text : str
        A sentence of the response, raw, or a proposed claim.
    offset : int
        Added to all spans, so that they point into the whole response.
    """
    tokens: list[Token] = []
    clause = 0
    previous: Word | None = None
    for word in words_of(text):
        before = _break_before(text, previous, word)
        clause += before is not Break.NONE
        span = Span(word.span.start + offset, word.span.end + offset)
        is_pictorial = word.is_symbol and unicodedata.category(word.text[0]) == "So"
        for part in _parts(word):
            is_negation = part in NEGATIONS and (word.is_negation or part not in ENGLISH_NEGATIONS)
            tokens.append(
                Token(
                    key=word.key if word.number is not None else part,
                    word=part,
                    span=span,
                    is_name=word.is_capitalised and word.number is None and part not in FUNCTION,
                    is_number=word.number is not None,
                    is_negation=is_negation,
                    is_possessive=word.span.of(text).casefold().endswith(_POSSESSIVES),
                    is_unit=(word.is_symbol and not is_pictorial) or part in SCALES,
                    is_content=is_negation or (part not in FUNCTION and not is_pictorial),
                    before=before,
                    clause=clause,
                )
            )
            before = Break.NONE
        previous = word
    return tuple(tokens)


def _parts(word: Word) -> tuple[str, ...]:
    if word.is_negation and word.text not in NEGATIONS:
        return (word.text, "not")
    return (word.text,)


def _break_before(text: str, previous: Word | None, word: Word) -> Break:
    if previous is None:
        return Break.NONE
    gap = text[previous.span.end : word.span.start]
    if not _STRONG_MARKS.isdisjoint(gap) or word.text in CLAUSE_OPENERS or " – " in gap:
        return Break.CLAUSE
    if gap.startswith(".") and word.is_capitalised and len(previous.text) > 3:
        return Break.CLAUSE
    if _WEAK_MARKS.isdisjoint(gap):
        return Break.NONE
    return Break.CLAUSE if word.text in COORDINATORS else Break.COMMA
