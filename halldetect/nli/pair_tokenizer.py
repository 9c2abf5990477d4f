"""Texts to token ids with offsets, and token ids to the padded pairs an encoder reads."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from halldetect.nli.pair_template import PairTemplate, derive_template

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

TokenIds = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """One text as tokens, without special tokens and never cut.

    Parameters
    ----------
    ids : int32 array (n_tokens,)
        Vocabulary ids.
    starts, ends : int32 array (n_tokens,)
        Character offsets into the text, ``[start, end)``.
    unknown : int
        How many tokens the vocabulary does not have.
    """

    ids: TokenIds
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    unknown: int


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Pairs as an encoder reads them, padded on the right to the longest.

    Parameters
    ----------
    input_ids, attention_mask, token_type_ids : int64 array (n_pairs, longest)
        The usual three inputs of BERT-style encoders; the mask is 0 on padding.
    """

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]

    def halves(self) -> tuple[PaddedBatch, PaddedBatch]:
        """Return the first and the second half of the pairs."""
        middle = len(self.input_ids) // 2
        parts = [
            (array[:middle], array[middle:])
            for array in (self.input_ids, self.attention_mask, self.token_type_ids)
        ]
        return PaddedBatch(*(part[0] for part in parts)), PaddedBatch(*(part[1] for part in parts))


class PairTokenizer:
    """Tokenizes texts once and assembles any pair of them without tokenizing again.

    Special tokens written out in a text (``[SEP]``, ``</s>``) are plain text: a document can
    never move the border between premise and hypothesis.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        A fast tokenizer with a post-processor for pairs. Its own truncation and padding are
        switched off, so it must not be shared with code that relies on them.
    pad_id : int
        Id written on padding; the attention mask hides it.
    digest : str, optional
        SHA-256 of the tokenizer's file; by default of the tokenizer as it serialises itself.

    Attributes
    ----------
    digest : str
        Names the tokenizer wherever offsets that depend on it are stored.

    Raises
    ------
    ModelError
        When the tokenizer puts nothing between premise and hypothesis, or builds pairs in a way
        that is not "specials, premise, specials, hypothesis, specials".
    """

    def __init__(self, tokenizer: Tokenizer, pad_id: int = 0, digest: str | None = None) -> None:
        self.digest = digest or hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._pad_id = pad_id
        self._template = derive_template(tokenizer)
        self._unknown_id = _unknown_id(tokenizer)
        forbidden = _special_ids(tokenizer, self._template)
        if self._unknown_id is not None:
            forbidden.discard(self._unknown_id)
        self._forbidden = np.array(sorted(forbidden), dtype=np.int32)

    @property
    def overhead(self) -> int:
        """Number of special tokens in a pair."""
        template = self._template
        return len(template.before) + len(template.between) + len(template.after)

    def encode(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize texts without special tokens and without any limit.

        Parameters
        ----------
        texts : sequence of str
            Texts of any length.

        Returns
        -------
        list of TokenizedText
            One a text, in order.
        """
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            self._tokenized(text, encoding) for text, encoding in zip(texts, encodings, strict=True)
        ]

    def assemble(self, premises: Sequence[TokenIds], hypotheses: Sequence[TokenIds]) -> PaddedBatch:
        """Join token ids to padded pairs, exactly as the tokenizer builds a true pair.

        Parameters
        ----------
        premises, hypotheses : sequence of int32 array (n_tokens,)
            The two sides, pair by pair.

        Returns
        -------
        PaddedBatch
            Arrays of shape (number of pairs, longest pair).

        Raises
        ------
        ValueError
            When the two sides are not equally many.
        """
        pairs = list(zip(premises, hypotheses, strict=True))
        longest = max((len(p) + len(h) for p, h in pairs), default=0) + self.overhead
        input_ids = np.full((len(pairs), longest), self._pad_id, dtype=np.int64)
        mask = np.zeros_like(input_ids)
        types = np.zeros_like(input_ids)
        for row, (premise, hypothesis) in enumerate(pairs):
            self._write_pair(input_ids[row], mask[row], types[row], premise, hypothesis)
        return PaddedBatch(input_ids, mask, types)

    def _write_pair(
        self,
        input_ids: NDArray[np.int64],
        mask: NDArray[np.int64],
        types: NDArray[np.int64],
        premise: TokenIds,
        hypothesis: TokenIds,
    ) -> None:
        template = self._template
        parts = (
            (template.before, template.types_before),
            (premise, template.type_premise),
            (template.between, template.types_between),
            (hypothesis, template.type_hypothesis),
            (template.after, template.types_after),
        )
        position = 0
        for ids, type_ids in parts:
            end = position + len(ids)
            input_ids[position:end] = ids
            types[position:end] = type_ids
            position = end
        mask[:position] = 1

    def _tokenized(self, text: str, encoding: Encoding) -> TokenizedText:
        ids = np.array(encoding.ids, dtype=np.int32)
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        if np.isin(ids, self._forbidden).any():
            ids, offsets = self._encode_defused(text)
        return TokenizedText(
            ids, offsets[:, 0], offsets[:, 1], int((ids == self._unknown_id).sum())
        )

    def _encode_defused(self, text: str) -> tuple[TokenIds, NDArray[np.int32]]:
        """Encode a text in which the vocabulary itself finds special tokens.

        Some vocabularies (SentencePiece) carry the special tokens as ordinary pieces, so that the
        tokenizer's own switch for plain text does not help. The text is cut inside every such
        piece and encoded part by part; normalisation may have made the piece out of other
        characters, so the cut follows the offsets and not the spelling.
        """
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoding.ids, dtype=np.int32)
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        special = np.isin(ids, self._forbidden)
        if not special.any():
            return ids, offsets
        # A piece made of one character cannot be cut: it is a character the model does not know.
        single = special & (offsets[:, 1] - offsets[:, 0] < 2)
        if self._unknown_id is not None:
            ids[single] = self._unknown_id
        cuts = [int(start) + 1 for start in offsets[special & ~single, 0]]
        if not cuts:
            return ids, offsets
        borders = [0, *cuts, len(text)]
        parts = [
            (start, *self._encode_defused(text[start:end]))
            for start, end in itertools.pairwise(borders)
        ]
        return (
            np.concatenate([part_ids for _, part_ids, _ in parts]),
            np.concatenate([part_offsets + start for start, _, part_offsets in parts]),
        )


def _special_ids(tokenizer: Tokenizer, template: PairTemplate) -> set[int]:
    declared = {
        token_id
        for token_id, token in tokenizer.get_added_tokens_decoder().items()
        if token.special
    }
    used = np.concatenate([template.before, template.between, template.after])
    return declared | {int(token_id) for token_id in used}


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Id of the token for what the vocabulary lacks; None when it covers every byte."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    unknown = model.get("unk_token")
    return None if unknown is None else tokenizer.token_to_id(unknown)
