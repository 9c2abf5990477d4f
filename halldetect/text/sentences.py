"""Sentences of a text with exact character offsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from halldetect.errors import LimitError
from halldetect.spans import Span
from halldetect.text.blocks import Block, blocks_of, trimmed
from halldetect.text.boundaries import sentence_ends
from halldetect.text.punkt_parameters import english_punkt
from halldetect.text.sentence_kind import SentenceKind

__all__ = ["SPLITTER", "Sentence", "SentenceKind", "split_sentences"]

# Names the rules of this package wherever offsets made by them are stored; a change that moves a
# border between two sentences needs another name.
SPLITTER = "punkt-en-1"
_FLOWING = (SentenceKind.PROSE, SentenceKind.LIST_ITEM)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, list item, line of code or table row.

    Parameters
    ----------
    span : Span
        Offsets into the text; ``span.of(text)`` is the sentence, without surrounding whitespace.
    kind : SentenceKind
        What it is in the layout of the text.
    """

    span: Span
    kind: SentenceKind


def split_sentences(text: str, max_sentences: int = 50_000) -> tuple[Sentence, ...]:
    """Split `text` into sentences, in order, with every non-space character in exactly one.

    A dialogue turn, list item, heading, line of code or table row never shares a sentence with
    another. Inside them NLTK's Punkt decides which period ends a sentence; ends of other scripts
    and expository abbreviations are added (see `boundaries`).

    Parameters
    ----------
    text : str
        Any text; it is never changed.
    max_sentences : int
        Largest number of sentences accepted.

    Returns
    -------
    tuple of Sentence
        Empty for text of whitespace only.

    Raises
    ------
    LimitError
        When `text` has more than `max_sentences` sentences; found without splitting the rest.
    ModelError
        When NLTK or the Punkt parameters are not installed.
    """
    english_punkt()  # a missing package is an error for every text, not only where Punkt is asked
    sentences: list[Sentence] = []
    for block in blocks_of(text):
        for sentence in _sentences_of(text, block):
            if len(sentences) >= max_sentences:
                raise LimitError(
                    f"the text has more than max_sentences = {max_sentences} sentences "
                    f"(reached at character {sentence.span.start} of {len(text)}); "
                    "raise it (HALLDETECT_MAX_SENTENCES) or send the text in parts"
                )
            sentences.append(sentence)
    return tuple(sentences)


def _sentences_of(text: str, block: Block) -> Iterator[Sentence]:
    if block.kind not in _FLOWING:
        yield Sentence(block.span, block.kind)
        return
    start = block.span.start
    for end in chain(sentence_ends(text, start, block.span.end), [block.span.end]):
        span = trimmed(text, start, end)
        if span is not None:
            yield Sentence(span, block.kind)
        start = end
