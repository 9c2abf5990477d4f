"""An encoder whose every probability names its own pair, on the bundled tokenizer."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from told_clock import Clock

from halldetect.nli.entailment import softmax
from halldetect.nli.pair_tokenizer import PairTokenizer
from halldetect.provenance import ModelProvenance

TOKENIZER_FILE = Path(__file__).resolve().parents[2] / "models" / "nli-minilm" / "tokenizer.json"


class MarkerModel:
    """Logits are a digest of the pair's own tokens: a cell in a wrong place cannot go unseen.

    Parameters
    ----------
    broken_word : str, optional
        Pairs with this word get NaN.
    lost_rows : int
        Rows that are missing from every answer.
    """

    max_tokens = 512
    provenance = ModelProvenance("marker", "onnx", "", "float32", "cpu")

    def __init__(self, broken_word=None, lost_rows=0, max_tokens=512):
        self.tokenizer = PairTokenizer(Tokenizer.from_file(str(TOKENIZER_FILE)))
        self.max_tokens = max_tokens
        self.calls = []
        self._broken = set(self.tokenizer.encode([broken_word])[0].ids) if broken_word else set()
        self._lost_rows = lost_rows

    def logits(self, batch):
        self.calls.append(len(batch.input_ids))
        rows = [
            self._row(ids[mask == 1])
            for ids, mask in zip(batch.input_ids, batch.attention_mask, strict=True)
        ]
        return np.array(rows[: len(rows) - self._lost_rows], dtype=np.float32).reshape(-1, 3)

    def _row(self, ids):
        if self._broken & set(ids.tolist()):
            return [np.nan] * 3
        digest = hashlib.sha256(ids.astype(np.int64).tobytes()).digest()
        return [byte / 64 for byte in digest[:3]]

    def probabilities(self, premise_ids, hypothesis_ids):
        """Return (E, N, C) of one pair alone."""
        return softmax(self.logits(self.tokenizer.assemble([premise_ids], [hypothesis_ids])))[0]


@pytest.fixture
def marker_model():
    return MarkerModel()


@pytest.fixture(scope="session")
def make_marker_model():
    return MarkerModel


@pytest.fixture
def clock():
    """Return a clock that the test moves."""
    return Clock()
