"""Token buckets, against a clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told_clock import Clock

from api.token_buckets import TokenBuckets

unhurried = settings(deadline=None)
PER_MINUTE = st.integers(1, 600)
# Pauses between requests: none, short, and long enough for full buckets.
PAUSES = st.lists(st.one_of(st.just(0.0), st.floats(0, 5), st.floats(0, 200)), max_size=60)


def test_a_bucket_begins_full_and_fills_up_within_a_minute(clock):
    buckets = TokenBuckets(3, most_owners=10, clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == pytest.approx(20)
    clock.now += 20
    assert buckets.take("a") == 0
    assert buckets.take("a") == pytest.approx(20)
    clock.now += 3600
    assert [buckets.take("a") == 0 for _ in range(4)] == [True, True, True, False]


@unhurried
@given(per_minute=st.integers(1, 12), pauses=PAUSES)
def test_no_window_admits_more_than_a_burst_and_what_comes_back(per_minute, pauses):
    clock = Clock()
    buckets = TokenBuckets(per_minute, most_owners=1, clock=clock)
    admitted = []
    for pause in pauses:
        clock.now += pause
        admitted += [clock.now for _ in range(per_minute // 4 + 2) if not buckets.take("a")]
    for number, begin in enumerate(admitted):
        for last, end in enumerate(admitted[number:], start=number):
            allowed = per_minute + (end - begin) * per_minute / 60
            assert last - number + 1 <= allowed + 1e-3


@unhurried
@given(per_minute=PER_MINUTE, pauses=PAUSES)
def test_whoever_waits_as_long_as_told_is_let_in(per_minute, pauses):
    clock = Clock()
    buckets = TokenBuckets(per_minute, most_owners=1, clock=clock)
    for pause in pauses:
        clock.now += pause
        told = buckets.seconds_until_one("a")
        assert buckets.take("a") == told
        if told:
            assert told <= 60 / per_minute + 1e-3
            clock.now += told
            assert buckets.take("a") == 0


@unhurried
@given(per_minute=PER_MINUTE, requests=st.integers(1, 200))
def test_whoever_keeps_to_the_rate_is_never_refused(per_minute, requests):
    clock = Clock()
    buckets = TokenBuckets(per_minute, most_owners=1, clock=clock)
    for _ in range(requests):
        assert buckets.take("a") == 0
        clock.now += 60 / per_minute


OWNERS = st.lists(st.tuples(st.integers(0, 30), st.floats(0, 30)), max_size=200)


@unhurried
@given(per_minute=st.integers(1, 5), requests=OWNERS, most=st.integers(1, 5))
def test_buckets_are_bounded_and_forgotten_only_when_full(per_minute, requests, most):
    clock = Clock()
    bounded = TokenBuckets(per_minute, most_owners=most, clock=clock)
    boundless = TokenBuckets(per_minute, most_owners=1000, clock=clock)
    for owner, pause in requests:
        clock.now += pause
        assert bounded.take(owner) >= 0
        assert len(bounded) <= most
    # Owners that fit are kept apart whatever came before.
    clock.now += 120
    for owner in range(most):
        for _ in range(per_minute + 1):
            assert bounded.take(owner) == boundless.take(owner)


def test_owners_do_not_use_up_each_others_tokens(clock):
    buckets = TokenBuckets(1, most_owners=10, clock=clock)
    assert [buckets.take(owner) for owner in "abc"] == [0, 0, 0]
    assert buckets.take("a") > 0


def test_too_many_owners_share_one_bucket(clock):
    buckets = TokenBuckets(2, most_owners=2, clock=clock)
    for owner in "ab":
        buckets.take(owner)
    assert [bool(buckets.take(owner)) for owner in "cdef"] == [False, False, True, True]
    assert buckets.seconds_until_one("z") > 0
    assert buckets.take("a") == 0  # those who have their own still have it
    clock.now += 60
    assert buckets.seconds_until_one("z") == 0
