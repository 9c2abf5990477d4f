"""Marks at the start of a line."""

from __future__ import annotations

import pytest

from halldetect.text.marks import is_bare_list_mark, without_leading_marks


@pytest.mark.parametrize("text", ["-", "*", "3.", " 2) ", "•", "(a)"])
def test_an_empty_item_is_a_bare_mark(text: str) -> None:
    assert is_bare_list_mark(text)


@pytest.mark.parametrize("text", ["", "- x", "1984.", "J.", "No.", "-5"])
def test_what_is_no_bare_mark(text: str) -> None:
    assert not is_bare_list_mark(text)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("- a\r\n2. b\n> c", "  a\r\n   b\n  c"),
        ("1984. It began", "1984. It began"),
        ("J. Smith", "J. Smith"),
        ("-5 degrees", "-5 degrees"),
        ("a - b", "a - b"),
        ("42.", "42."),
    ],
)
def test_marks_are_blanked_in_place(text: str, bare: str) -> None:
    assert without_leading_marks(text) == bare
