"""Numbers compare by their whole value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halldetect.text.words import words_of


def number_of(text: str) -> Decimal | None:
    """Return the number that all of a text is, or None."""
    words = words_of(text)
    return words[0].number if len(words) == 1 else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000", "1000"),
        ("1,234,567.89", "1234567.89"),
        ("1,00,000", "100000"),
        ("12\u00a0000", "12000"),
        ("12\u202f000", "12000"),
        ("12\u2009000", "12000"),
        ("1'000", "1000"),
        ("4.2", "4.2"),
        ("4,2", "4.2"),
        ("1e2", "100"),
        ("1.5E-3", "0.0015"),
        ("-5", "-5"),
        ("21st", "21"),
        ("½", "0.5"),
        ("٣", "3"),
        ("zero", "0"),
        ("Twenty-one", "21"),
        ("ninety nine", "99"),
        ("hundred", "100"),
        ("two hundred and five", "205"),
        ("two thousand and nineteen", "2019"),
        ("twelve thousand three hundred and forty-five", "12345"),
        ("5 hundred", "500"),
    ],
)
def test_written_numbers(text: str, value: str) -> None:
    assert number_of(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "A4", "2.14.1", "10:30", "million", "one two", "twenty-ten", "1,0000", "²", "九", "no"],
)
def test_what_is_no_number(text: str) -> None:
    assert number_of(text) is None


@given(st.integers(-(10**15), 10**15))
def test_separators_change_nothing(value: int) -> None:
    assert number_of(str(value)) == number_of(f"{value:,}") == value
