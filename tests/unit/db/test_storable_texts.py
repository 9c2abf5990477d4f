"""Messages of errors as they are stored."""

from __future__ import annotations

import pytest

from db.storable_texts import LONGEST_ERROR, storable_error


@pytest.mark.parametrize("message", ["", "ValueError: x", "\u00e4" * LONGEST_ERROR])
def test_what_fits_is_stored_as_it_is(message):
    assert storable_error(message) == message


@pytest.mark.parametrize("length", [LONGEST_ERROR + 1, 10**6])
def test_what_is_longer_is_cut_and_says_so(length):
    stored = storable_error("\u00e4" * length)
    assert len(stored) == LONGEST_ERROR
    assert stored.startswith("\u00e4" * 1900)
    assert stored.endswith(f" ... (cut: the message has {length:,} characters)")


def test_what_postgres_does_not_take_is_replaced():
    assert storable_error("a\0b\ud800c") == "a\ufffdb\\ud800c"


def test_what_grows_by_that_is_bounded_too():
    assert len(storable_error("\ud800" * LONGEST_ERROR)) == LONGEST_ERROR
