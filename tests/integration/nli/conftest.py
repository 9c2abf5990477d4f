"""The bundled model, and tiny random classifiers made on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from halldetect.nli.onnx_model import OnnxNliModel
from halldetect.nli.torch_model import TorchNliModel

BUNDLED = Path(__file__).resolve().parents[3] / "models" / "nli-minilm"
LABELS = {0: "entailment", 1: "neutral", 2: "contradiction"}


@pytest.fixture(scope="session")
def bundled_folder() -> Path:
    return BUNDLED


@pytest.fixture(scope="session")
def onnx_model() -> OnnxNliModel:
    return OnnxNliModel.load(BUNDLED, threads=2)


@pytest.fixture(scope="session")
def torch_model() -> TorchNliModel:
    return TorchNliModel.load(str(BUNDLED), device="cpu")


def small_tokenizer() -> Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "[", "]", *letters]
    tokens += [f"##{letter}" for letter in letters]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(tokens[:5])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def save_tiny_classifier(folder: Path, kind: str, labels: dict[int, str] = LABELS) -> Path:
    """Save a random classifier of some architecture with a tokenizer of single letters."""
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        DebertaV2Config,
        DebertaV2ForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
    )

    torch.manual_seed(3)
    tokenizer = small_tokenizer()
    sizes = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "pad_token_id": 0,
        "initializer_range": 0.3,
        "id2label": labels,
        "label2id": {name: number for number, name in labels.items()},
    }
    if kind == "deberta-v2":
        config = DebertaV2Config(
            **sizes,
            max_position_embeddings=64,
            type_vocab_size=0,
            relative_attention=True,
            position_biased_input=False,
            pos_att_type=["p2c", "c2p"],
            position_buckets=16,
            share_att_key=True,
            norm_rel_ebd="layer_norm",
        )
        model = DebertaV2ForSequenceClassification(config)
    elif kind == "roberta":
        config = RobertaConfig(**sizes, max_position_embeddings=66, type_vocab_size=1)
        model = RobertaForSequenceClassification(config)
    else:
        config = BertConfig(**sizes, max_position_embeddings=64)
        model = BertForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def tiny_deberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_classifier(tmp_path_factory.mktemp("tiny") / "deberta", "deberta-v2")


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_classifier(tmp_path_factory.mktemp("tiny") / "roberta", "roberta")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_classifier(tmp_path_factory.mktemp("tiny") / "bert", "bert")


@pytest.fixture(scope="session")
def two_label_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    labels = {0: "entailment", 1: "not_entailment"}
    return save_tiny_classifier(tmp_path_factory.mktemp("tiny") / "two", "bert", labels)


@pytest.fixture(scope="session")
def unnamed_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    labels = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    return save_tiny_classifier(tmp_path_factory.mktemp("tiny") / "unnamed", "bert", labels)
