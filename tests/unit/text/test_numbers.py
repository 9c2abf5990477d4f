"""Numbers compare by their whole value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halldetect.text.numbers import parse_number


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
        ("80%", "80"),
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
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "A4", "2.14.1", "10:30", "million", "one two", "twenty-ten", "1,0000", "²", "九", "no"],
)
def test_what_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@given(st.integers(-(10**15), 10**15))
def test_separators_change_nothing(value: int) -> None:
    assert parse_number(str(value)) == parse_number(f"{value:,}") == value


@given(st.text(max_size=20))
def test_any_text_is_a_number_or_none(text: str) -> None:
    assert parse_number(text) is None or parse_number(text) == parse_number(text)
