import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halldetect.scoring.aggregate import aggregate_responses, claim_weights, deciding_claims
from halldetect.scoring.policy import PAPER, Aggregation, ClaimValue, Policy
from halldetect.scoring.segments import offsets_of

# Timing belongs in the benchmarks: on a busy machine a slow example is no fault.
unhurried = settings(deadline=None)

POLICIES = [
    Policy(name="p", claim_value=ClaimValue.ENTAILMENT, aggregation=aggregation)
    for aggregation in Aggregation
]
by_aggregation = pytest.mark.parametrize(
    "policy", POLICIES, ids=[policy.aggregation for policy in POLICIES]
)

values_in = st.floats(-1, 1, allow_subnormal=True)
positive_values = st.floats(0, 1, exclude_min=True)
responses = st.lists(st.tuples(values_in, st.booleans()), min_size=1, max_size=60)


def aggregate_one(values, policy, flagged=None):
    numbers = np.array(values, dtype=np.float64)
    flags = np.zeros(len(numbers), dtype=bool) if flagged is None else np.array(flagged)
    return aggregate_responses(numbers, offsets_of([len(numbers)]), claim_weights(flags), policy)[0]


def with_aggregation(aggregation):
    return next(policy for policy in POLICIES if policy.aggregation == aggregation)


@by_aggregation
@unhurried
@given(claims=responses, data=st.data())
def test_the_order_of_claims_changes_no_bit(policy, claims, data):
    shuffled = data.draw(st.permutations(claims))
    before = aggregate_one([v for v, _ in claims], policy, [f for _, f in claims])
    after = aggregate_one([v for v, _ in shuffled], policy, [f for _, f in shuffled])
    assert before == after


@by_aggregation
@unhurried
@given(claims=responses)
def test_a_response_score_lies_between_0_and_1(policy, claims):
    score = aggregate_one([v for v, _ in claims], policy, [f for _, f in claims])
    assert 0 <= score <= 1
    assert not math.copysign(1, score) < 0


@by_aggregation
@unhurried
@given(claims=responses, data=st.data())
def test_raising_one_claim_never_raises_the_response_score(policy, claims, data):
    values = [value for value, _ in claims]
    flagged = [flag for _, flag in claims]
    which = data.draw(st.integers(0, len(values) - 1))
    raised = list(values)
    raised[which] = data.draw(st.floats(values[which], 1))
    # A few units of rounding: a library's log and exp need not be monotonic in their last bit.
    limit = aggregate_one(values, policy, flagged) + 1e-15
    assert aggregate_one(raised, policy, flagged) <= limit


@unhurried
@given(
    margin=st.floats(0, 1, exclude_max=True),
    others=st.lists(values_in, max_size=30),
    data=st.data(),
)
def test_one_value_at_or_below_the_margin_makes_fed_exactly_1(margin, others, data):
    policy = PAPER.model_copy(update={"margin": margin})
    low = data.draw(st.floats(-1, margin))
    assert aggregate_one([*others, low], policy) == 1.0


@unhurried
@given(values=st.lists(positive_values, min_size=1, max_size=40))
def test_fed_is_1_minus_the_geometric_mean(values):
    expected = 1 - math.exp(math.fsum(map(math.log, values)) / len(values))
    assert aggregate_one(values, PAPER) == pytest.approx(expected, abs=1e-12)


@by_aggregation
@unhurried
@given(batch=st.lists(st.lists(st.tuples(values_in, st.booleans()), max_size=30), max_size=12))
def test_many_audits_at_once_equal_one_by_one(policy, batch):
    claims = [claim for audit in batch for claim in audit]
    values = np.array([value for value, _ in claims], dtype=np.float64)
    weights = claim_weights(np.array([flag for _, flag in claims], dtype=bool))
    offsets = offsets_of([len(audit) for audit in batch])
    together = aggregate_responses(values, offsets, weights, policy)
    alone = [aggregate_one([v for v, _ in a], policy, [f for _, f in a]) for a in batch]
    np.testing.assert_array_equal(together, np.array(alone, dtype=np.float64))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-200] * 1000, 1.0),
        ([0.9] * 20_000, 0.1),
        ([1.0], 0.0),
        ([1.0] * 10_000, 0.0),
        ([5e-324, 1.0], 1.0),
        ([5e-324], 1.0),
        ([5e-324] * 10_000, 1.0),
        ([0.5] * 10_000, 0.5),
        ([0.25, 1.0], 0.5),
        ([0.0], 1.0),
        ([-1.0, 1.0], 1.0),
    ],
)
def test_extreme_products_neither_underflow_nor_warn(values, expected):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        score = aggregate_one(values, PAPER)
    assert score == pytest.approx(expected, abs=1e-12)


@unhurried
@given(value=st.floats(1e-300, 1))
def test_ten_thousand_equal_claims_score_as_one(value):
    assert aggregate_one([value] * 10_000, PAPER) == pytest.approx(1 - value, abs=1e-12)


@pytest.mark.parametrize(
    ("aggregation", "flagged", "expected"),
    [
        (Aggregation.MIN, [False, False, False], 1.0),
        (Aggregation.MEAN, [False, False, False], 1 - 1.4 / 3),
        (Aggregation.MEAN, [True, False, False], 1 - 1.4 / 3),
        (Aggregation.ROW_MAX, [True, False, False], 1 - 1.4 / 3),
        (Aggregation.WEIGHTED, [False, False, False], 1 - 1.4 / 3),
        (Aggregation.WEIGHTED, [True, True, True], 1 - 1.4 / 3),
        (Aggregation.WEIGHTED, [True, False, False], 1 - (2 * 0.8 + 0.6) / 4),
        (Aggregation.WEIGHTED, [False, False, True], 1 - 1.4 / 4),
        (Aggregation.FEDSCORE, [False, False, False], 1.0),
    ],
)
def test_each_aggregation_on_one_response(aggregation, flagged, expected):
    score = aggregate_one([0.8, 0.6, -0.4], with_aggregation(aggregation), flagged)
    assert score == pytest.approx(expected, abs=1e-15)


def test_min_of_positive_values():
    score = aggregate_one([0.8, 0.25, 0.6], with_aggregation(Aggregation.MIN))
    assert score == 0.75


def test_the_margin_is_a_rule_of_fedscore_alone():
    update = {"margin": 0.5}
    for policy in POLICIES:
        if policy.aggregation is not Aggregation.FEDSCORE:
            strict = policy.model_copy(update=update)
            assert aggregate_one([0.4, 0.9], strict) == aggregate_one([0.4, 0.9], policy)
    assert aggregate_one([0.4, 0.9], PAPER.model_copy(update=update)) == 1.0


@by_aggregation
def test_an_audit_without_claims_has_no_score(policy):
    values = np.array([0.5, 0.25])
    scores = aggregate_responses(values, np.array([0, 0, 1, 1, 2, 2]), np.ones(2), policy)
    np.testing.assert_array_equal(np.isnan(scores), [True, False, True, False, True])
    assert aggregate_responses(np.zeros(0), np.array([0, 0]), np.zeros(0), policy).shape == (1,)
    assert aggregate_responses(np.zeros(0), np.array([0]), np.zeros(0), policy).shape == (0,)


@pytest.mark.parametrize(
    ("values", "offsets", "n_weights"),
    [
        ([0.5, 0.5], [0, 1], 2),
        ([0.5, 0.5], [1, 2], 2),
        ([0.5, 0.5], [0, 2, 1, 2], 2),
        ([0.5, 0.5], [], 2),
        ([0.5, 0.5], [0, 2], 1),
        ([0.5, 1.5], [0, 2], 2),
        ([0.5, float("nan")], [0, 2], 2),
        ([0.5, float("-inf")], [0, 2], 2),
    ],
)
def test_arrays_that_do_not_fit_are_refused(values, offsets, n_weights):
    with pytest.raises(ValueError, match=r"claim (values|offsets)"):
        aggregate_responses(
            np.array(values), np.array(offsets, dtype=np.int64), np.ones(n_weights), PAPER
        )


def test_the_lowest_claim_decides_and_of_equal_ones_the_first():
    values = np.array([0.9, 0.1, 0.1, -0.5, 0.7])
    offsets = np.array([0, 3, 3, 5, 5])
    np.testing.assert_array_equal(deciding_claims(values, offsets, PAPER), [1, -1, 0, -1])
    smallest = with_aggregation(Aggregation.MIN)
    np.testing.assert_array_equal(deciding_claims(values, offsets, smallest), [1, -1, 0, -1])


@pytest.mark.parametrize(
    "aggregation", [Aggregation.MEAN, Aggregation.WEIGHTED, Aggregation.ROW_MAX]
)
def test_no_single_claim_decides_an_average(aggregation):
    assert deciding_claims(np.ones(2), np.array([0, 2]), with_aggregation(aggregation)) is None
