"""Claims that point back: an opening pronoun needs the sentence before."""

from __future__ import annotations

from collections.abc import Sequence

from halldetect.claims.meaning_words import word_set
from halldetect.claims.model import UnauditedReason
from halldetect.claims.statements import Statement
from halldetect.claims.tokens import tokens_of
from halldetect.spans import Span
from halldetect.text.sentences import SentenceKind

_OPENING_PRONOUNS = word_set(
    "he she it they this that these those his her hers its their theirs we our"
)
_SILENT = (UnauditedReason.NO_WORDS, UnauditedReason.GREETING)


def points_back(text: str) -> bool:
    """Tell whether a claim opens with a pronoun.

    A bare definite ("the company") points back too, but showing the encoder the sentence before
    it made verdicts worse: docs/accuracy.md has the measurement.
    """
    tokens = tokens_of(text)
    return bool(tokens) and tokens[0].word in _OPENING_PRONOUNS


def sentence_before(statements: Sequence[Statement], position: int) -> Span | None:
    """Return the span of the statement that a pronoun in statement `position` points back to.

    That is the nearest one before it in running text or a list; greetings are passed over.
    """
    for statement in reversed(statements[:position]):
        is_running = statement.kind in (SentenceKind.PROSE, SentenceKind.LIST_ITEM)
        if is_running and statement.reason not in _SILENT:
            return statement.span
    return None
