"""Whether a claim has a name, a number or a date, for policies that weigh these."""

from __future__ import annotations

import re

from halldetect.text.function_words import FUNCTION_WORDS
from halldetect.text.words import Word, words_of

_MONTH = (
    "January|February|April|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
)
_WEEKDAY = "Mon|Tues|Wednes|Thurs|Fri|Satur|Sun"
_CALENDAR_WORDS = frozenset(f"{_MONTH}|May|March".casefold().split("|")) | {
    f"{day}day" for day in _WEEKDAY.casefold().split("|")
}

_DATE = re.compile(
    rf"\b(?:(?i:{_WEEKDAY})days?\b"
    rf"|(?i:january|february|april|june|july|august|september|october|november|december)\b"
    rf"|(?:{_MONTH})\b\.?\s+\d"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH}|May|March)\b"
    rf"|(?:May|March)\s+\d"
    rf"|(?i:in|of|since|until|till|by|last|next|this|early|late|mid|from|to|before|after)"
    rf"[\s-](?:May|March)\b"
    rf"|\d{{4}}-\d{{2}}-\d{{2}}\b"
    rf"|\d{{1,2}}(?P<mark>[./])\d{{1,2}}(?P=mark)(?:\d{{4}}|\d{{2}})\b)"
)
_YEAR = re.compile(r"(?<![\w.,'’$€£+-])(?:1\d{3}|20\d{2}|2100)(?:s\b|(?![\w%]|[.,'’]\d))")
_YEAR_RANGE = re.compile(r"(?<!\d)(?:1\d{3}|20\d{2})[-–/](?:\d{4}|\d{2})(?![\d,])")


def has_date(text: str) -> bool:
    """Tell whether `text` names a date: a month, weekday, year 1000 to 2100, or date in digits.

    "May" and "March" count beside a number or after a word such as "in".
    """
    return any(pattern.search(text) for pattern in (_DATE, _YEAR, _YEAR_RANGE))


def has_number(text: str) -> bool:
    """Tell whether `text` has a number, in digits or in words."""
    return any(word.number is not None for word in words_of(text))


def has_name(text: str) -> bool:
    """Tell whether `text` has a proper name.

    A name is a capitalised word after the first one, or an acronym; the first word counts only
    when another capitalised word follows it directly. Function words, months and weekdays, and
    scripts without capital letters give none.
    """
    words = words_of(text)
    names = [_may_be_name(word) for word in words]
    if any(names[1:]):
        return True
    return bool(words) and names[0] and words[0].is_acronym


def _may_be_name(word: Word) -> bool:
    is_plain = word.text in FUNCTION_WORDS or word.text in _CALENDAR_WORDS
    return word.is_capitalised and not is_plain and not word.is_negation
