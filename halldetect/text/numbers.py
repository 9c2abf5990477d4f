"""Numbers as they are written: digits with separators, ordinals and English number words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

_THOUSANDS_MARKS = ",'٬\u00a0\u2009\u202f"
_GROUPED = (
    r"\d{1,3}(?:,\d{3}){1,10}(?!,?\d)|\d{1,2}(?:,\d{2}){1,10},\d{3}(?!\d)"
    r"|\d{1,3}(?:'\d{3}){1,10}(?!\d)|\d{1,3}(?:٬\d{3}){1,10}(?!\d)|\d{1,3}(?:[\u00a0\u2009\u202f]\d{3}){1,10}(?!\d)"
)

DIGITS = (
    r"(?:(?<![\w.,'\-])[-+])?"
    rf"(?:{_GROUPED}|\d+)(?:[.٫]\d+|,\d{{1,2}}(?!\d))?(?:[eE][-+]?\d{{1,3}}(?![^\W_]))?"
)
"""Regular expression of one number in digits, sign included; "1,000" is one, "1.2.3" none."""

_NUMBER = re.compile(DIGITS)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\Z", re.IGNORECASE)
_LARGEST_EXACT = 60  # digits; longer runs are identifiers

_SMALL = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
}
_TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_SCALES = {"hundred": 100, "thousand": 1000}


def parse_digits(text: str) -> Decimal | None:
    """Return the whole value of a number written in digits, None if `text` is anything else.

    Parameters
    ----------
    text : str
        For example "1,000", "12 000" with a no-break or thin space, "4.2", "-5", "1e2", "3rd"
        or "½". "2.14.1", "10:30" and "A4" are no numbers.
    """
    if len(text) == 1 and not text.isdigit():
        numeric = unicodedata.numeric(text, None)
        is_fraction = numeric is not None and unicodedata.category(text) == "No"
        return Decimal(repr(numeric)) if is_fraction and "SUPERSCRIPT" not in _name(text) else None
    bare = _ORDINAL.sub("", text)
    if len(bare) > _LARGEST_EXACT or _NUMBER.fullmatch(bare) is None:
        return None
    return Decimal(_plain(bare))


def _name(character: str) -> str:
    return unicodedata.name(character, "")


def _plain(number: str) -> str:
    """Return `number` without thousands separators and with a decimal point."""
    comma_is_decimal = re.search(r"(?<!,\d\d),\d{1,2}(?:[eE]|\Z)", number)
    if comma_is_decimal and "." not in number:
        head, _, tail = number.rpartition(",")
        number = f"{head}.{tail}"
    number = number.replace("٫", ".")
    return number.translate({ord(mark): None for mark in _THOUSANDS_MARKS})


def may_open_number(word: str) -> bool:
    """Tell whether a case-folded word can begin what `number_word_run` reads."""
    is_small = word.isdecimal() and len(word) <= 3
    return is_small or word in _SMALL or word in _TENS or word in _SCALES


def number_word_run(words: Sequence[str], start: int) -> tuple[int, Decimal] | None:
    """Read the longest number in words that starts at ``words[start]``.

    Parameters
    ----------
    words : sequence of str
        Case-folded words that follow each other with a space or hyphen between, such as
        ``["two", "hundred", "and", "five", "boats"]``. A number below 1,000 in digits may start
        a run before a scale word ("3 thousand").
    start : int
        Index of the first word.

    Returns
    -------
    tuple of (int, Decimal) or None
        Index after the run and its value; None when no number in words starts here. "million" and
        larger stay words: "4.2 million" is 4.2 and a content word.
    """
    below = _below_hundred(words, start)
    if below is None and words[start] in _SCALES:
        below = (start, 1)
    if below is None:
        below = _small_digits(words, start)
    if below is None:
        return None
    position, value = below
    if _at(words, position) == "hundred":
        position, value = _with_rest(words, position + 1, value * 100)
    if _at(words, position) == "thousand":
        position, value = _thousands(words, position + 1, value * 1000)
    return position, Decimal(value)


def _at(words: Sequence[str], position: int) -> str:
    return words[position] if position < len(words) else ""


def _below_hundred(words: Sequence[str], position: int) -> tuple[int, int] | None:
    word = _at(words, position)
    if word in _SMALL:
        return position + 1, _SMALL[word]
    if word not in _TENS:
        return None
    unit = _SMALL.get(_at(words, position + 1), 0)
    return (position + 2, _TENS[word] + unit) if 1 <= unit <= 9 else (position + 1, _TENS[word])


def _small_digits(words: Sequence[str], position: int) -> tuple[int, int] | None:
    word = words[position]
    is_small = word.isdecimal() and len(word) <= 3
    if is_small and _at(words, position + 1) in _SCALES:
        return position + 1, int(word)
    return None


def _with_rest(words: Sequence[str], position: int, value: int) -> tuple[int, int]:
    """Add what follows "hundred" or "thousand": "five", "and twenty-one"."""
    after_and = position + 1 if _at(words, position) == "and" else position
    rest = _below_hundred(words, after_and)
    return (rest[0], value + rest[1]) if rest is not None else (position, value)


def _thousands(words: Sequence[str], position: int, value: int) -> tuple[int, int]:
    rest = _below_hundred(words, position)
    if rest is not None and _at(words, rest[0]) == "hundred":
        return _with_rest(words, rest[0] + 1, value + rest[1] * 100)
    return _with_rest(words, position, value)
