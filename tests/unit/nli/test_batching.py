from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halldetect.nli.batching import batch_statistics, plan_batches

item_lengths = st.lists(st.integers(min_value=1, max_value=600), max_size=200)
budgets = st.integers(min_value=1, max_value=4000)


@given(item_lengths, budgets)
def test_every_item_is_in_exactly_one_batch(lengths: list[int], budget: int) -> None:
    batches = plan_batches(np.array(lengths, dtype=np.int64), budget)
    planned = sorted(int(index) for batch in batches for index in batch)
    assert planned == list(range(len(lengths)))


@given(item_lengths, budgets)
def test_padded_tokens_stay_in_the_budget_unless_one_item_exceeds_it(
    lengths: list[int], budget: int
) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    for batch in plan_batches(sizes, budget):
        assert sizes[batch].max() * len(batch) <= budget or len(batch) == 1


@given(item_lengths, budgets)
def test_batches_hold_neighbours_in_length(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    planned = [int(sizes[index]) for batch in plan_batches(sizes, budget) for index in batch]
    assert planned == sorted(lengths, reverse=True)


@given(item_lengths, budgets)
def test_no_two_neighbouring_batches_would_fit_into_one(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    batches = plan_batches(sizes, budget)
    for batch, following in itertools.pairwise(batches):
        assert int(sizes[batch[0]]) * (len(batch) + len(following[:1])) > budget


@pytest.mark.parametrize("budget", [1, 10, 99])
def test_an_item_over_the_budget_runs_alone_and_the_plan_ends(budget: int) -> None:
    batches = plan_batches(np.array([100, 5, 100]), budget)
    assert [0] in [batch.tolist() for batch in batches]
    assert [2] in [batch.tolist() for batch in batches]


def test_nothing_to_plan() -> None:
    assert plan_batches(np.array([], dtype=np.int64), 10) == []


@pytest.mark.parametrize(("lengths", "budget"), [([1], 0), ([0, 3], 10), ([-1], 10)])
def test_impossible_numbers_are_refused(lengths: list[int], budget: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        plan_batches(np.array(lengths), budget)


def test_statistics_of_a_plan() -> None:
    lengths = np.array([10, 8, 2])
    statistics = batch_statistics(lengths, [np.array([0, 1]), np.array([2])], token_budget=20)
    assert (statistics.batches, statistics.pairs) == (2, 3)
    assert (statistics.tokens, statistics.padded_tokens) == (20, 22)
    assert statistics.padding_ratio == pytest.approx(2 / 22)
    assert statistics.fill == pytest.approx(22 / 40)


def test_statistics_of_several_plans_add_up() -> None:
    lengths = np.array([10, 8, 2])
    batches = [np.array([0, 1]), np.array([2])]
    parts = [batch_statistics(lengths, [batch], token_budget=20) for batch in batches]
    assert parts[0] + parts[1] == batch_statistics(lengths, batches, token_budget=20)


def test_plans_under_different_budgets_do_not_add_up() -> None:
    empty = [batch_statistics(np.array([], dtype=np.int64), [], budget) for budget in (20, 30)]
    with pytest.raises(ValueError, match="20 and 30"):
        empty[0] + empty[1]


def test_statistics_of_an_empty_plan() -> None:
    statistics = batch_statistics(np.array([], dtype=np.int64), [], token_budget=20)
    assert (statistics.padding_ratio, statistics.fill) == (0.0, 0.0)
