"""Marks at the start of a line that are layout and not text: bullets, numbers, ``#`` and ``>``."""

from __future__ import annotations

import re

LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
"""Every way to end a line, Windows line ends as one break."""

_INDENT = r"[^\S\n\r\v\f\x85\u2028\u2029]*"
_BULLET = r"[-*+•‣◦⁃∙·▪▫■□●○–—]"
_ENUMERATOR = r"\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[a-z]|[ivx]{1,4})[.)]|\(?[A-Z]\)"
_SPACE = r"[^\S\n\r\v\f\x85\u2028\u2029]"

QUOTE_MARK = re.compile(rf"{_INDENT}(?:>{_INDENT})+")
"""The ``>`` marks of a quoted line."""

HEADING_MARK = re.compile(rf"{_INDENT}#{{1,6}}(?={_SPACE})")
"""The ``#`` marks of a heading."""

LIST_MARK = re.compile(rf"{_INDENT}(?:{_BULLET}|{_ENUMERATOR})(?:(?=\s)|$)")
"""A bullet or number; "1984." is no mark (more than three digits), nor is the initial "J."."""

LEADING_MARKS = re.compile(
    rf"(?:^|(?<=[\n\r\v\f\x85\u2028\u2029]))"
    rf"(?:{_INDENT}>)*"
    rf"(?:{_INDENT}#{{1,6}}(?={_SPACE}))?"
    rf"(?:{_INDENT}(?:{_BULLET}|{_ENUMERATOR})(?={_SPACE}+\S)(?:{_SPACE}+\[[ xX]\](?={_SPACE}))?"
    rf"|{_INDENT}{_BULLET}(?=\s|\Z))?"
)
"""All marks a line starts with, for taking them off.

A number with nothing after it stays: a bare "42." may be the whole answer.
"""


def without_leading_marks(text: str) -> str:
    """Return `text` with the marks at the start of its lines blanked, offsets unchanged."""
    return LEADING_MARKS.sub(lambda match: " " * len(match.group()), text)


def is_bare_list_mark(text: str) -> bool:
    """Tell whether `text` is a list mark and nothing else, as in an empty item "3."."""
    match = LIST_MARK.match(text)
    return match is not None and not text[match.end() :].strip()
