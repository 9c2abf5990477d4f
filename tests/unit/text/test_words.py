"""Words: normalised for comparison, placed in the original characters."""

from __future__ import annotations

import time
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halldetect.text.words import clean_text, words_of


def keys(text: str) -> list[str]:
    return [word.key for word in words_of(text)]


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_words_stand_in_order_inside_the_text(text: str) -> None:
    words = words_of(text)
    assert all(word.span.of(text) and word.text for word in words)
    assert all(one.span.end <= two.span.start for one, two in pairwise(words))


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\u2060", "\u200d", "\u200c", "\ufeff"])
def test_invisible_characters_are_covered_and_ignored(invisible: str) -> None:
    text = f"The har{invisible}bour has 70{invisible}0 ber{invisible}ths."
    assert keys(text) == ["the", "harbour", "has", "700", "berths"]
    assert words_of(text)[1].span.of(text) == f"har{invisible}bour"
    assert words_of(text)[3].number == 700


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The council’s light-rail plan", ["the", "council", "light", "rail", "plan"]),
        ("workers' O’Neill's it's", ["workers", "o'neill", "it"]),
        ("**940** _very_ `code` **B**old", ["940", "very", "code", "bold"]),
        ("crème bru\u0302le\u0301e ＡＢＣ", ["crème", "brûlée", "abc"]),
        ("9 € and $5, 80 percent or 80%", ["9", "€", "and", "$", "5", "80", "%", "or", "80", "%"]),
        ("🍜 hot, 👍🏽!", ["🍜", "hot", "👍"]),
        ("博物馆", ["博", "物", "馆"]),
        ("खुलती है।", ["खुलती", "है"]),
        ("- one\n2. two\n> three\n# four\n* [x] five", ["1", "2", "3", "4", "5"]),
        ("30km 5G A4 1990s 10² CO₂", ["30", "km", "5g", "a4", "1990s", "10^2", "co2"]),
        ("2.14.1 at 10:30", ["2.14.1", "at", "10:30"]),
        ("... --- * # |", []),
    ],
)
def test_normalised_words(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("can't", "can’t", "cannot", "isn't", "won’t", "not", "no", "never", "none", "nobody"),
        *("nothing", "neither", "nor", "without", "nowhere", "doesnt", "Nobody's"),
    ],
)
def test_negations(text: str) -> None:
    assert [word.is_negation for word in words_of(f"They {text} go")] == [False, True, False]
    assert not words_of(text)[0].is_stopword


def test_contractions_compare_with_their_plain_form() -> None:
    assert keys("can’t cannot won't isn't") == ["can", "can", "will", "is"]


@pytest.mark.parametrize("text", ["Pump no. 5", "It is not only new", "It isn't just old", "note"])
def test_no_negation(text: str) -> None:
    assert not any(word.is_negation for word in words_of(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12\u00a0000\u202fkr", 12000),
        ("1,000 beds", 1000),
        ("twenty-one boats", 21),
        ("two hundred and five boats", 205),
        ("three thousand two hundred boats", 3200),
        ("3 thousand", 3000),
        ("4.2 million", Decimal("4.2")),
        ("-5 °C", -5),
        ("\u22125 °C", -5),
        ("the 3rd", 3),
    ],
)
def test_whole_numbers(text: str, value: Decimal) -> None:
    assert [word.number for word in words_of(text) if word.number is not None] == [value]


def test_a_number_in_words_covers_all_of_them() -> None:
    text = "The two hundred\nand five boats"
    (number,) = (word for word in words_of(text) if word.number is not None)
    assert number.span.of(text) == "two hundred\nand five"


def test_number_forms_share_a_key_and_prefixes_do_not() -> None:
    assert keys("three 3 3rd 3.0") == ["3"] * 4
    assert len(set(keys("1 1,000 1e2 1.5 10"))) == 5
    long_number = "1" * 40
    assert keys(long_number) == [long_number]


def test_case_and_stopwords() -> None:
    words = words_of("The NATO may not see Paris before")
    assert [word.is_stopword for word in words] == [True] + [False] * 6
    assert [word.is_capitalised for word in words] == [True, True, *[False] * 3, True, False]
    assert [word.is_acronym for word in words] == [False, True, *[False] * 5]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1.1" * 100_000 + "a",
            "1." * 200_000 + "1a",
            "1" * 300_000 + "a",
            "111," * 100_000 + "1",
        ),
        *("1" + "*" * 300_000 + "1", "a" + "_" * 300_000 + "b", "`" * 300_000, "'" * 300_000),
        *("a'" * 100_000, "> " * 150_000, " " * 300_000 + "x", "one " * 20_000, "<" * 300_000),
        *(
            "\u200b" * 300_000,
            "\u0301" * 300_000,
            "-" * 300_000,
            "1e" * 100_000,
            "11\u00a0" * 90_000,
        ),
    ],
    ids=range(18),
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    begin = time.process_time()
    words_of(text)
    clean_text(text)
    assert time.process_time() - begin < 60  # a quadratic one takes many minutes


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("The lake covers **940** km", "The lake covers 940 km"),
        ("- item", "item"),
        ("1. item\n   two", "item two"),
        ("• *Note*: `x_y` ~~old~~ __new__ [2]", "Note: x_y old new [2]"),
        ("2*3 * 4 and 2**3", "2*3 * 4 and 2**3"),
        ("> said\n> twice", "said twice"),
        ("## Head", "Head"),
        ("Name: ____ and _x_", "Name: and x"),
        ("42.", "42."),
        ("ware\u00adhouse  pal\u2060lets", "warehouse pallets"),
        ("-5 °C", "-5 °C"),
        ("👨\u200d👩\u200d👧 family", "👨\u200d👩\u200d👧 family"),
        ("can’t", "can’t"),
    ],
)
def test_clean_text(text: str, clean: str) -> None:
    assert clean_text(text) == clean


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_clean_text_has_no_loose_whitespace(text: str) -> None:
    assert clean_text(text) == " ".join(clean_text(text).split())
