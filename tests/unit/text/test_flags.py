"""Names, numbers and dates in a claim."""

from __future__ import annotations

import pytest

from halldetect.text.flags import has_date, has_name, has_number


@pytest.mark.parametrize(
    "text",
    [
        *("It is May 5.", "In May it opened", "built in 1984", "2024-03-02", "on Monday"),
        *("monday", "3/4/2020", "12 March", "the 1990s", "2019-20", "Dec. 3", "1st of June"),
        *("sold in 2100.", "2.3.2020"),
    ],
)
def test_dates(text: str) -> None:
    assert has_date(text)


@pytest.mark.parametrize(
    "text", ["You may go", "March on", "1,984 people", "$2000", "version 2.2010", "in 999", "20255"]
)
def test_no_dates(text: str) -> None:
    assert not has_date(text)


@pytest.mark.parametrize(
    "text", ["Mayor Ortiz left", "We met Bob", "NASA flew", "The Rhône flooded", "- Lena Ortiz won"]
)
def test_names(text: str) -> None:
    assert has_name(text)


@pytest.mark.parametrize(
    "text", ["The mayor left", "Boats sank", "Then I left", "It closes on Monday", "", "周日休息。"]
)
def test_no_names(text: str) -> None:
    assert not has_name(text)


def test_numbers() -> None:
    assert has_number("It has three floors")
    assert has_number("It cost 5 €")
    assert not has_number("It has A4 paper")
    assert not has_number("1. Close the lid")
