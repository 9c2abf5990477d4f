from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from halldetect.errors import LimitError, VerificationError
from halldetect.nli.batching import BatchStatistics
from halldetect.nli.entailment import pair_probabilities, softmax
from halldetect.nli.pair_tokenizer import PaddedBatch, PairTokenizer
from halldetect.provenance import ModelProvenance

Forward = Callable[[PaddedBatch], NDArray[np.float32]]


class FakeModel:
    """An NLI model whose logits are given by a function of the batch."""

    def __init__(self, tokenizer: Tokenizer, forward: Forward, max_tokens: int = 512) -> None:
        self.tokenizer = PairTokenizer(tokenizer)
        self.max_tokens = max_tokens
        self.provenance = ModelProvenance("fake", "none", "", "float32", "cpu")
        self.logits = forward


def marked_sums(batch: PaddedBatch) -> NDArray[np.float32]:
    """Give every pair logits that only its own ids decide."""
    total = (batch.input_ids * batch.attention_mask).sum(axis=1)
    return np.stack([total % 7, total % 5, total % 3], axis=1).astype(np.float32)


def texts(lengths: list[int]) -> list[NDArray[np.int32]]:
    return [np.full(length, 5 + number, np.int32) for number, length in enumerate(lengths)]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=50,
)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    picks=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    budget=st.integers(1, 300),
)
def test_every_pair_gets_its_own_result_in_the_order_asked(
    wordpiece: Tokenizer, lengths: list[int], picks: list[tuple[int, int]], budget: int
) -> None:
    model = FakeModel(wordpiece, marked_sums)
    ids = texts(lengths)
    pairs = np.array([(a % len(ids), b % len(ids)) for a, b in picks]).reshape(-1, 2)
    found = pair_probabilities(model, ids, ids, pairs, budget)
    assert found.shape == (len(pairs), 3)
    for row, (premise, hypothesis) in enumerate(pairs):
        alone = model.tokenizer.assemble([ids[premise]], [ids[hypothesis]])
        np.testing.assert_array_equal(found[row], softmax(marked_sums(alone))[0])


def test_progress_adds_up_to_all_pairs(wordpiece: Tokenizer) -> None:
    done: list[BatchStatistics] = []
    ids = texts([3, 9, 27])
    pairs = np.array([(a, b) for a in range(3) for b in range(3)])
    pair_probabilities(FakeModel(wordpiece, marked_sums), ids, ids, pairs, 60, on_batch=done.append)
    assert sum(batch.pairs for batch in done) == len(pairs)
    assert len(done) > 1
    assert [batch.batches for batch in done] == [1] * len(done)
    overhead = PairTokenizer(wordpiece).overhead
    lengths = [a + b + overhead for a in (3, 9, 27) for b in (3, 9, 27)]
    assert sum(batch.tokens for batch in done) == sum(lengths)
    assert all(batch.padded_tokens >= batch.tokens for batch in done)
    assert {batch.token_budget for batch in done} == {60}


@pytest.mark.parametrize(
    "broken",
    [
        lambda batch: marked_sums(batch)[:-1],
        lambda batch: marked_sums(batch)[:, :2],
        lambda batch: marked_sums(batch).reshape(-1),
        lambda batch: np.repeat(marked_sums(batch), 2, axis=0),
    ],
)
def test_a_result_of_another_shape_is_an_error(wordpiece: Tokenizer, broken: Forward) -> None:
    ids = texts([4, 4, 4])
    with pytest.raises(VerificationError, match=r"shape .* pair \d"):
        pair_probabilities(FakeModel(wordpiece, broken), ids, ids, np.array([(0, 0), (1, 2)]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_number_that_is_not_finite_is_an_error_that_names_the_pair(
    wordpiece: Tokenizer, value: float, column: int
) -> None:
    def overflow(batch: PaddedBatch) -> NDArray[np.float32]:
        logits = marked_sums(batch)
        logits[batch.attention_mask.sum(axis=1) == 20, column] = value
        return logits

    ids = texts([4, 13, 6])
    pairs = np.array([(0, 0), (0, 2), (1, 0), (2, 2)])
    with pytest.raises(VerificationError, match=r"pair 2 \(premise 1, hypothesis 0\)"):
        pair_probabilities(FakeModel(wordpiece, overflow), ids, ids, pairs)


def test_a_pair_over_the_encoders_limit_is_an_error_before_anything_runs(
    wordpiece: Tokenizer,
) -> None:
    def never(batch: PaddedBatch) -> NDArray[np.float32]:
        raise AssertionError("the model ran")

    ids = texts([4, 13])
    model = FakeModel(wordpiece, never, max_tokens=19)
    with pytest.raises(LimitError, match=r"pair 1 \(premise 1, hypothesis 0\) has 20 .* most 19"):
        pair_probabilities(model, ids, ids, np.array([(0, 0), (1, 0)]))


@pytest.mark.parametrize("pair", [(-1, 0), (0, -1), (0, 3), (3, 0)])
def test_a_pair_outside_the_texts_is_an_error(wordpiece: Tokenizer, pair: tuple[int, int]) -> None:
    ids = texts([4, 4, 4])
    with pytest.raises(IndexError):
        pair_probabilities(FakeModel(wordpiece, marked_sums), ids, ids, np.array([pair]))


def test_no_pairs(wordpiece: Tokenizer) -> None:
    model = FakeModel(wordpiece, marked_sums)
    assert pair_probabilities(model, [], [], np.empty((0, 2), dtype=np.int64)).shape == (0, 3)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4, 1e30])
def test_softmax_neither_overflows_nor_vanishes(shift: float) -> None:
    probabilities = softmax(np.array([[0.0, 1.0, 2.0]]) + shift)
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)


def test_softmax_of_far_apart_logits() -> None:
    np.testing.assert_allclose(softmax(np.array([[1000.0, 0.0, -1000.0]])), [[1, 0, 0]], atol=1e-7)
