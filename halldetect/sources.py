"""A source made ready for verification: sentences, tokens, context library, search index."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from halldetect.context.bm25 import Bm25Index
from halldetect.context.library import HYPOTHESIS_TOKENS, ContextLibrary, build_context_library
from halldetect.context.windows import join_sentence_tokens
from halldetect.errors import InputError, ModelError
from halldetect.nli.model import NliModel
from halldetect.text.sentences import split_sentences
from halldetect.text.words import words_of

# Below this a premise is a fragment of a sentence and verdicts mean nothing.
_LEAST_PREMISE_TOKENS = 16


@dataclass(frozen=True)
class PreparedSource:
    """One source, split and tokenised once for all audits that share it.

    Parameters
    ----------
    text : str
        The source, exactly as given.
    sha256 : str
        Digest of its UTF-8 bytes.
    sentences : int
        Number of sentences.
    unreadable_sentences : int
        Sentences of which the encoder's tokenizer keeps nothing.
    library : ContextLibrary
        Chunks and spans.
    """

    text: str
    sha256: str
    sentences: int
    unreadable_sentences: int
    library: ContextLibrary

    @cached_property
    def search_index(self) -> Bm25Index:
        """BM25 over the spans, built when pre-selection first asks for it."""
        words = [word for word in words_of(self.text) if not word.is_stopword]
        starts = np.array([word.span.start for word in words], dtype=np.int64)
        texts = [word.text for word in words]
        return Bm25Index(
            [
                texts[np.searchsorted(starts, span.start) : np.searchsorted(starts, span.end)]
                for span in self.library.spans
            ]
        )


def premise_room(model: NliModel) -> int:
    """Return the most tokens that a premise may have beside a claim.

    Raises
    ------
    ModelError
        When the encoder's limit leaves no room for a premise.
    """
    room = model.max_tokens - model.tokenizer.overhead - HYPOTHESIS_TOKENS
    if room < _LEAST_PREMISE_TOKENS:
        raise ModelError(
            f"the NLI model {model.provenance.name} reads {model.max_tokens} tokens; with "
            f"{HYPOTHESIS_TOKENS} kept for the claim that leaves no room for a premise"
        )
    return room


def prepare_source(text: str, model: NliModel, max_sentences: int) -> PreparedSource:
    """Split, tokenise and chunk a source.

    Raises
    ------
    InputError
        When there is nothing in it that the encoder can read.
    LimitError
        When it has more than `max_sentences` sentences.
    ModelError
        When the encoder's limit leaves no room for a premise.
    """
    room = premise_room(model)
    sentences = [sentence.span for sentence in split_sentences(text, max_sentences)]
    tokenized = model.tokenizer.encode([span.of(text) for span in sentences])
    readable = [
        (span, tokens) for span, tokens in zip(sentences, tokenized, strict=True) if len(tokens.ids)
    ]
    if not readable:
        raise InputError("the source holds nothing that the NLI model's tokenizer can read")
    spans = [span for span, _ in readable]
    source_tokens = join_sentence_tokens(spans, [tokens for _, tokens in readable])
    return PreparedSource(
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        sentences=len(sentences),
        unreadable_sentences=len(sentences) - len(readable),
        library=build_context_library(spans, source_tokens, room),
    )
