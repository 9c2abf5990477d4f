import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halldetect.context.bm25 import Bm25Index
from halldetect.errors import InputError

# Timing belongs in the benchmarks: on a busy machine a slow example is no fault.
unhurried = settings(deadline=None)

words = st.lists(st.sampled_from(["ferry", "quay", "tide", "lamp", "rope", "hull"]), max_size=8)
sources = st.lists(words, max_size=12)


def select_spans(spans, claim, k):
    return Bm25Index(spans).select(claim, k)


def split(*spans):
    return [span.lower().split() for span in spans]


def test_the_spans_that_share_rare_words_are_chosen():
    spans = split(
        "the harbour was dredged in spring",
        "the ferry sails twice a day",
        "the lamp of the pier is green",
        "the ferry is blue",
        "the rope is new",
    )
    assert select_spans(spans, ["the", "blue", "ferry", "sails"], 2).tolist() == [1, 3]


def test_the_same_sentence_of_another_year_stays_a_candidate():
    spans = split(
        "in 2023 turnover was 4.1 million",
        "in 2024 turnover was 5.6 million",
        "the board met twice",
        "the office moved to the coast",
    )
    assert select_spans(spans, ["in", "2021", "turnover", "was", "4.1", "million"], 2).tolist() == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("spans", "claim"),
    [
        (split("the boat is old", "the shed is new"), ["the", "boat", "is", "new"]),
        (split("the the the"), ["the"]),
        ([[], []], ["the", "boat", "is", "new"]),
        ([[]], []),
        ([], ["boat"]),
    ],
)
@pytest.mark.parametrize("extra", [0, 1, 100])
def test_with_room_for_all_nothing_is_dropped(spans, claim, extra):
    k = max(len(spans), 1) + extra
    assert select_spans(spans, claim, k).tolist() == list(range(len(spans)))


@pytest.mark.parametrize(
    ("spans", "claim"),
    [
        (split("a b", "c d", "e f"), ["unseen"]),
        (split("a b", "c d", "e f"), []),
        ([[], [], []], ["a"]),
        (split("tide", "tide", "tide"), ["tide"]),
    ],
)
def test_all_spans_are_kept_when_no_score_tells_them_apart(spans, claim):
    assert select_spans(spans, claim, 1).tolist() == [0, 1, 2]


def test_a_word_in_most_or_all_spans_still_adds():
    index = Bm25Index(split("tide lamp", "tide rope", "tide hull", "tide quay"))
    assert (index.scores(["tide"]) > 0).all()
    assert index.scores(["tide", "rope"]).argmax() == 1


def test_a_claim_that_repeats_a_word_is_no_other_claim():
    index = Bm25Index(split("tide lamp", "tide rope", "hull"))
    np.testing.assert_array_equal(index.scores(["tide"] * 5), index.scores(["tide"]))


def test_ties_go_to_the_earlier_span():
    spans = split("rope", "tide", "lamp tide", "tide", "tide")
    assert select_spans(spans, ["tide"], 2).tolist() == [1, 3]
    assert select_spans(spans, ["tide"], 3).tolist() == [1, 3, 4]


def test_the_formula():
    scores = Bm25Index(split("tide tide lamp", "rope")).scores(["tide"])
    rarity = np.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    saturated = 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2))
    assert scores.tolist() == pytest.approx([rarity * saturated, 0.0])


@pytest.mark.parametrize("k", [0, -1])
def test_nothing_to_keep_is_refused(k):
    with pytest.raises(InputError, match="at least 1 span"):
        select_spans(split("a b"), ["a"], k)


@unhurried
@given(spans=sources, claim=words, k=st.integers(1, 15))
def test_a_selection_is_sorted_distinct_and_large_enough(spans, claim, k):
    chosen = select_spans(spans, claim, k)
    assert all(0 <= number < len(spans) for number in chosen)
    assert all(left < right for left, right in itertools.pairwise(chosen.tolist()))
    assert len(chosen) in (min(k, len(spans)), len(spans))


@unhurried
@given(spans=sources, claim=words, k=st.integers(1, 15))
def test_what_is_left_out_scores_no_higher_than_what_is_chosen(spans, claim, k):
    index = Bm25Index(spans)
    scores = index.scores(claim)
    assert np.isfinite(scores).all()
    chosen = index.select(claim, k)
    left_out = np.setdiff1d(np.arange(len(spans)), chosen)
    if len(left_out):
        assert scores[left_out].max() <= scores[chosen].min()


def test_other_processes_choose_the_same_spans():
    program = (
        "from halldetect.context.bm25 import Bm25Index\n"
        "spans = [[f'w{(i * j) % 17}' for j in range(1, 9)] for i in range(60)]\n"
        "print(Bm25Index(spans).select([f'w{i}' for i in range(9)], 10).tolist())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
