"""Claims that point back: an opening pronoun or bare definite needs the sentence before."""

from __future__ import annotations

from collections.abc import Sequence

from halldetect.claims.meaning_words import word_set
from halldetect.claims.model import UnauditedReason
from halldetect.claims.statements import Statement
from halldetect.claims.tokens import Break, Token, tokens_of
from halldetect.spans import Span
from halldetect.text.sentences import SentenceKind

_OPENING_PRONOUNS = word_set(
    "he she it they this that these those his her hers its their theirs we our"
)
_LONGEST_NOUN_PHRASE = 3  # words after "the", again after "of"
_SILENT = (UnauditedReason.NO_WORDS, UnauditedReason.GREETING)


def points_back(text: str) -> bool:
    """Tell whether a claim opens with a pronoun or a bare definite.

    A bare definite is "the" with a noun phrase that has no name and no number: "the company",
    "the mayor of the town", not "the 1998 fire" and not "the mayor of Leeds".
    """
    tokens = tokens_of(text)
    if not tokens:
        return False
    if tokens[0].word in _OPENING_PRONOUNS:
        return True
    return tokens[0].word == "the" and _is_bare(tokens[1:])


def _is_bare(tokens: Sequence[Token]) -> bool:
    length = 0
    for token in tokens:
        if token.before is not Break.NONE or length == _LONGEST_NOUN_PHRASE:
            break
        if token.is_name or token.is_number:
            return False
        if token.word == "of":
            length = 0
        elif token.is_content:
            length += 1
        elif token.word not in ("a", "an", "the", "his", "her", "its", "their"):
            break
    return length > 0


def sentence_before(statements: Sequence[Statement], position: int) -> Span | None:
    """Return the span of the statement that a pronoun in statement `position` points back to.

    That is the nearest one before it in running text or a list; greetings are passed over.
    """
    for statement in reversed(statements[:position]):
        is_running = statement.kind in (SentenceKind.PROSE, SentenceKind.LIST_ITEM)
        if is_running and statement.reason not in _SILENT:
            return statement.span
    return None
