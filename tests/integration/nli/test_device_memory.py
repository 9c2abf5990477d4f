"""A batch that a device has no memory for runs in smaller ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from halldetect.errors import ModelError
from halldetect.model_loading import BUNDLED_NLI
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.torch_model import TorchNliModel


@pytest.fixture(scope="module")
def model():
    return TorchNliModel.load(str(BUNDLED_NLI), device="cpu")


@pytest.fixture
def small_device(model, monkeypatch):
    """Return what makes a device on which at most so many pairs have room."""
    whole = TorchNliModel._forward_at_once
    sizes = []

    def set_room(most):
        def forward(self, network, batch):
            sizes.append(len(batch.input_ids))
            if len(batch.input_ids) > most:
                raise torch.OutOfMemoryError
            return whole(self, network, batch)

        monkeypatch.setattr(TorchNliModel, "_forward_at_once", forward)
        return sizes

    return set_room


def probabilities(model):
    texts = [f"The mill had {n} wheels." for n in range(11)]
    ids = [text.ids for text in model.tokenizer.encode(texts)]
    pairs = np.column_stack([np.arange(11), np.arange(11)[::-1]])
    return pair_probabilities(model, ids, ids, pairs)


def test_smaller_batches_give_the_same_probabilities(model, small_device):
    expected = probabilities(model)
    sizes = small_device(most=3)
    assert np.allclose(probabilities(model), expected, atol=1e-6)
    assert sizes[0] == 11
    assert sum(size for size in sizes if size <= 3) == 11


def test_a_pair_that_does_not_fit_alone_is_an_error_that_says_so(model, small_device):
    small_device(most=0)
    with pytest.raises(ModelError, match=r"one pair of .* tokens does not fit the memory of cpu"):
        probabilities(model)
