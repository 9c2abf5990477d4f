from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, processors

from halldetect.errors import ModelError
from halldetect.nli.pair_tokenizer import PaddedBatch, PairTokenizer, TokenizedText

plain_text = st.text(st.characters(blacklist_categories=["Cs"], max_codepoint=0x2FFF), max_size=60)
marked_text = st.lists(
    st.sampled_from(["[SEP]", "[CLS]", "</s>", "<s>", "［SEP］", "[", "]", " ", "the bank", "é"]),
    max_size=12,
).map("".join)


def pair_ids(batch: PaddedBatch, row: int) -> list[int]:
    return batch.input_ids[row][batch.attention_mask[row] == 1].tolist()


def pair_types(batch: PaddedBatch, row: int) -> list[int]:
    return batch.token_type_ids[row][batch.attention_mask[row] == 1].tolist()


def encode(tokenizer: PairTokenizer, text: str) -> TokenizedText:
    return tokenizer.encode([text])[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(premise=plain_text, hypothesis=plain_text)
@example(premise="", hypothesis="")
def test_assembled_pairs_equal_the_tokenizers_own(
    raw_tokenizer: Tokenizer, premise: str, hypothesis: str
) -> None:
    tokenizer = PairTokenizer(copy.deepcopy(raw_tokenizer))
    raw_tokenizer.no_truncation()
    raw_tokenizer.no_padding()
    raw_tokenizer.encode_special_tokens = True
    expected = raw_tokenizer.encode(premise, hypothesis)
    first, second = tokenizer.encode([premise, hypothesis])
    batch = tokenizer.assemble([first.ids], [second.ids])
    assert pair_ids(batch, 0) == expected.ids
    assert pair_types(batch, 0) == expected.type_ids
    assert len(expected.ids) == len(first.ids) + len(second.ids) + tokenizer.overhead


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=marked_text)
def test_text_never_becomes_a_separator(raw_tokenizer: Tokenizer, text: str) -> None:
    tokenizer = PairTokenizer(raw_tokenizer)
    separators = _template_ids(raw_tokenizer)
    assert not separators & set(encode(tokenizer, text).ids.tolist())


def _template_ids(tokenizer: Tokenizer) -> set[int]:
    encoding = tokenizer.encode("the", "bank")
    return {
        token_id
        for token_id, side in zip(encoding.ids, encoding.sequence_ids, strict=True)
        if side is None
    }


MARKERS = ["[SEP]", "[CLS]", "[PAD]", "</s>", "<s>", "[SEP][SEP]", "[sep]"]


@pytest.mark.parametrize("marker", MARKERS)
def test_written_markers_leave_exactly_the_separators_of_a_true_pair(
    raw_tokenizer: Tokenizer, marker: str
) -> None:
    tokenizer = PairTokenizer(raw_tokenizer)
    separators = _template_ids(raw_tokenizer)
    premise = encode(tokenizer, f"the bank is closed. {marker} the bank is open.")
    hypothesis = encode(tokenizer, f"the bank is open. {marker}{marker}")
    ids = pair_ids(tokenizer.assemble([premise.ids], [hypothesis.ids]), 0)
    assert sum(token_id in separators for token_id in ids) == tokenizer.overhead


@pytest.mark.parametrize("marker", ["[SEP]", "[CLS]", "［SEP］"])
def test_a_vocabulary_that_holds_the_markers_keeps_true_offsets(
    unigram: Tokenizer, marker: str
) -> None:
    text = f"the bank {marker} is open"
    tokens = encode(PairTokenizer(unigram), text)
    assert (np.diff(tokens.starts) >= 0).all()
    assert (tokens.ends <= len(text)).all()
    covered = {at for s, e in zip(tokens.starts, tokens.ends, strict=True) for at in range(s, e)}
    assert {at for at, character in enumerate(text) if character != " "} <= covered


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=plain_text)
def test_offsets_point_into_the_text(raw_tokenizer: Tokenizer, text: str) -> None:
    tokens = encode(PairTokenizer(raw_tokenizer), text)
    assert len(tokens.ids) == len(tokens.starts) == len(tokens.ends)
    assert ((tokens.starts >= 0) & (tokens.starts <= tokens.ends)).all()
    assert (tokens.ends <= len(text)).all()


def test_a_token_covers_its_word(wordpiece: Tokenizer) -> None:
    text = "The  Bank is\topen."
    tokens = encode(PairTokenizer(wordpiece), text)
    words = [text[s:e] for s, e in zip(tokens.starts, tokens.ends, strict=True)]
    assert words == ["The", "Bank", "is", "open", "."]


@pytest.mark.parametrize("words", [13, 600, 5000])
def test_nothing_is_cut_whatever_limit_the_file_carries(wordpiece: Tokenizer, words: int) -> None:
    assert len(encode(PairTokenizer(wordpiece), "bank " * words).ids) == words


def test_unknown_characters_are_counted(wordpiece: Tokenizer) -> None:
    tokenizer = PairTokenizer(wordpiece)
    assert encode(tokenizer, "the bank ☃ ☃☃").unknown == 2
    assert encode(tokenizer, "the bank").unknown == 0


def test_a_byte_vocabulary_knows_everything(byte_level: Tokenizer) -> None:
    assert encode(PairTokenizer(byte_level), "東京 ☃").unknown == 0


def test_padding_is_masked_and_on_the_right(wordpiece: Tokenizer) -> None:
    tokenizer = PairTokenizer(wordpiece, pad_id=0)
    short, long = tokenizer.encode(["the bank", "the bank is open in the river"])
    batch = tokenizer.assemble([short.ids, long.ids], [short.ids, short.ids])
    assert batch.input_ids.shape == batch.attention_mask.shape == batch.token_type_ids.shape
    assert batch.input_ids.dtype == np.int64
    assert batch.attention_mask.sum(axis=1).tolist() == [7, 12]
    assert (np.diff(batch.attention_mask, axis=1) <= 0).all()
    assert (batch.input_ids[batch.attention_mask == 0] == 0).all()


def test_unequal_sides_are_refused(wordpiece: Tokenizer) -> None:
    tokenizer = PairTokenizer(wordpiece)
    ids = encode(tokenizer, "the bank").ids
    with pytest.raises(ValueError, match="zip"):
        tokenizer.assemble([ids, ids], [ids])


def test_no_texts_and_no_pairs(wordpiece: Tokenizer) -> None:
    tokenizer = PairTokenizer(wordpiece)
    assert tokenizer.encode([]) == []
    assert tokenizer.assemble([], []).input_ids.shape[0] == 0


def test_a_tokenizer_without_separator_is_refused(wordpiece: Tokenizer) -> None:
    wordpiece.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B:1", special_tokens=[]
    )
    with pytest.raises(ModelError, match="no separator"):
        PairTokenizer(wordpiece)


def test_a_tokenizer_that_swaps_the_sides_is_refused(wordpiece: Tokenizer) -> None:
    wordpiece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A",
        pair="[CLS] $B:1 [SEP] $A [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    with pytest.raises(ModelError, match="does not build pairs"):
        PairTokenizer(wordpiece)
