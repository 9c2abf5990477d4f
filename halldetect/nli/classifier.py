"""What a model folder says of its classifier, beside the weights: columns, tokenizer, limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from halldetect.errors import ModelError
from halldetect.nli.checkpoint import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    file_digest,
    one_line,
    read_json,
)
from halldetect.nli.labels import label_columns
from halldetect.nli.pair_tokenizer import PairTokenizer

# Families that number positions from the padding id on, so that the first rows of the position
# table are never used and the readable length is that much shorter.
_OFFSET_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "ibert"}
    | {"data2vec-text", "roberta-prelayernorm", "xmod", "big_bird_roberta"}
)


@dataclass(frozen=True, slots=True)
class Classifier:
    """A 3-way classifier of pairs, whatever runs it.

    Parameters
    ----------
    columns : tuple of int
        Output columns of entailment, neutral and contradiction.
    tokenizer : PairTokenizer
        The encoder's tokenizer.
    max_tokens : int
        The encoder's limit, special tokens included.
    """

    columns: tuple[int, int, int]
    tokenizer: PairTokenizer
    max_tokens: int


def read_classifier(folder: Path, label_mapping: Mapping[str, str] | None) -> Classifier:
    """Read the configuration and the tokenizer of a model folder.

    Parameters
    ----------
    folder : Path
        Folder with ``config.json`` and ``tokenizer.json``.
    label_mapping : mapping of str to str, optional
        See `halldetect.nli.labels.label_columns`.

    Returns
    -------
    Classifier
        What they say.

    Raises
    ------
    ModelError
        When one of them is damaged, or they are not those of a 3-way classifier of pairs.
    """
    path = folder / CONFIG_FILE
    config = read_json(path)
    return Classifier(
        columns=read_columns(config, path, label_mapping),
        tokenizer=load_tokenizer(folder, config),
        max_tokens=encoder_limit(config, path),
    )


def read_columns(
    config: Mapping[str, Any], path: Path, label_mapping: Mapping[str, str] | None
) -> tuple[int, int, int]:
    """Find the output columns of entailment, neutral and contradiction in a configuration.

    Parameters
    ----------
    config : mapping
        Content of ``config.json``.
    path : Path
        Where it came from, for the error.
    label_mapping : mapping of str to str, optional
        See `halldetect.nli.labels.label_columns`.

    Returns
    -------
    tuple of int
        The columns in the order entailment, neutral, contradiction.

    Raises
    ------
    ModelError
        When the configuration names no labels, or other than these three.
    """
    labels = config.get("id2label")
    if not isinstance(labels, dict) or not labels:
        raise ModelError(
            f"{path}: has no id2label, so its outputs have no meaning; "
            "choose a model fine-tuned for 3-way NLI"
        )
    try:
        return label_columns(
            {int(column): str(label) for column, label in labels.items()}, label_mapping
        )
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def encoder_limit(config: Mapping[str, Any], path: Path) -> int:
    """Return how many tokens the encoder reads, special tokens included.

    Tokenizers often state no usable limit, so the position table of the encoder decides.

    Parameters
    ----------
    config : mapping
        Content of ``config.json``.
    path : Path
        Where it came from, for the error.

    Returns
    -------
    int
        Tokens of the longest pair.

    Raises
    ------
    ModelError
        When the configuration states no limit.
    """
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < 1:
        raise ModelError(
            f"{path}: states no max_position_embeddings, so the longest readable pair is unknown"
        )
    if config.get("model_type") in _OFFSET_POSITIONS:
        padding = config.get("pad_token_id")
        return positions - ((1 if padding is None else int(padding)) + 1)
    return positions


def load_tokenizer(folder: Path, config: Mapping[str, Any]) -> PairTokenizer:
    """Load the fast tokenizer of a model folder.

    Parameters
    ----------
    folder : Path
        Folder with ``tokenizer.json``.
    config : mapping
        Content of ``config.json``; it says which id pads.

    Returns
    -------
    PairTokenizer
        Ready for pairs.

    Raises
    ------
    ModelError
        When the file is missing or broken, or builds no pairs.
    """
    path = folder / TOKENIZER_FILE
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{path}: not a readable fast tokenizer: {one_line(error)}") from error
    try:
        return PairTokenizer(
            tokenizer, pad_id=int(config.get("pad_token_id") or 0), digest=file_digest(path)
        )
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
