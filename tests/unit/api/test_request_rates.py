"""Which requests are too many, before anybody asks the database."""

from __future__ import annotations

import pytest

from api import request_rates
from api.problems import Problem
from api.request_rates import WRONG_KEYS_PER_MINUTE, RequestRates

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


@pytest.fixture
def rates():
    return RequestRates(3, clock=lambda: 1000.0)


def use_up_guesses(rates, address):
    for _ in range(WRONG_KEYS_PER_MINUTE):
        rates.admit(b"?", address)
        rates.note_unknown(address)


def refused(action, *arguments):
    with pytest.raises(Problem) as caught:
        action(*arguments)
    assert caught.value.status == 429
    assert int(caught.value.headers["Retry-After"]) > 0
    return caught.value.detail


def test_a_key_may_be_used_so_often_from_wherever(rates):
    rates.admit(KEY, "192.0.2.1")
    rates.note_found(KEY)
    for address in ("192.0.2.1", "192.0.2.2"):
        rates.admit(KEY, address)
        rates.note_found(KEY)  # counts nothing twice
    assert "3 requests a minute (HALLDETECT_REQUESTS_PER_MINUTE)" in refused(
        rates.admit, KEY, "192.0.2.3"
    )
    rates.note_found(OTHER_KEY)
    rates.admit(OTHER_KEY, "192.0.2.1")


def test_an_address_may_guess_so_often(rates):
    use_up_guesses(rates, "192.0.2.1")
    assert "unknown API keys" in refused(rates.admit, b"?", "192.0.2.1")
    rates.admit(b"?", "192.0.2.2")


def test_a_known_key_is_not_held_up_by_those_who_guess_beside_it(rates):
    rates.note_found(KEY)
    use_up_guesses(rates, "192.0.2.1")
    rates.admit(KEY, "192.0.2.1")
    refused(rates.admit, OTHER_KEY, "192.0.2.1")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("", "", True),
    ],
)
def test_one_network_of_one_user_counts_as_one_address(rates, one, other, is_same):
    use_up_guesses(rates, one)
    if is_same:
        refused(rates.admit, b"?", other)
    else:
        rates.admit(b"?", other)


def test_few_digests_are_remembered(rates, monkeypatch):
    monkeypatch.setattr(request_rates, "_MOST_OWNERS", 2)
    for number in range(10):
        rates.note_found(bytes([number]) * 32)
    assert len(rates._known) == 2
