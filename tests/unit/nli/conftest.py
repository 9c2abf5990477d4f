"""Small tokenizers made on the spot: no model files, no network."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WORDS = [
    *("the", "bank", "is", "closed", "open", "a", "mast", "was", "raised", "in", "and", "river"),
    *("1", "2", "3", ".", ",", "[", "]", "-", "sep", "cls"),
]


def wordpiece_tokenizer() -> Tokenizer:
    """BERT's kind: brackets are words of their own, every letter is known."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters]
    tokens += [f"##{letter}" for letter in letters]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    # Published tokenizers often carry a limit of their training; it must not cut anything here.
    tokenizer.enable_truncation(12)
    tokenizer.enable_padding()
    return tokenizer


def unigram_tokenizer() -> Tokenizer:
    """DeBERTa-v3's kind: the special tokens are ordinary pieces of the vocabulary too."""
    pieces = [("[PAD]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0)]
    pieces += [(f"▁{word}", -4.0) for word in WORDS]
    pieces += [(character, -9.0) for character in "▁abcdefghijklmnopqrstuvwxyz[]./<>SEPCLAD123,-"]
    tokenizer = Tokenizer(models.Unigram(list(dict.fromkeys(pieces)), unk_id=3))
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]"])
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return tokenizer


def byte_level_tokenizer() -> Tokenizer:
    """RoBERTa's kind: two separators, no type ids, every byte known."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *alphabet]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", vocabulary["</s>"]), ("<s>", vocabulary["<s>"]), add_prefix_space=False
    )
    return tokenizer


MAKERS = {
    "wordpiece": wordpiece_tokenizer,
    "unigram": unigram_tokenizer,
    "byte-level": byte_level_tokenizer,
}


@pytest.fixture(params=list(MAKERS))
def raw_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """One tokenizer of every kind, as it comes out of a file."""
    return MAKERS[request.param]()


@pytest.fixture
def wordpiece() -> Tokenizer:
    return wordpiece_tokenizer()


@pytest.fixture
def unigram() -> Tokenizer:
    return unigram_tokenizer()


@pytest.fixture
def byte_level() -> Tokenizer:
    return byte_level_tokenizer()
