"""Speaker labels of transcripts: "AGENT:", "Anna:", "A: ... B: ...", "[00:01:02] caller"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from halldetect.text.function_words import word_set

_ROLES = word_set(
    """user assistant system agent customer client caller operator human bot ai speaker host guest
    interviewer interviewee moderator patient doctor nurse teacher student q a"""
)

_TIMESTAMP = r"[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?[\])]?"
_LABEL = r"[^\W\d_][\w.'’#()-]{0,30}(?:[ ][\w.'’#()-]{1,30}){0,3}"

_TURN_START = re.compile(
    rf"\s*(?:[-–—*>]\s*)?(?:\*\*|__)?(?:{_TIMESTAMP}[ \t]*[-–—]?[ \t]*)?"
    rf"(?P<label>{_LABEL})(?:\s?[\[(]?\d{{1,2}}:\d{{2}}(?::\d{{2}})?[\])]?)?(?:\*\*|__)?:(?=\s|\*\*|$)"
)
_TIMED_LINE = re.compile(rf"\s*{_TIMESTAMP}\s+\S")
_INLINE_LABEL = re.compile(r"(?<=\s)(?P<label>[^\W\d_]\w{0,20}):(?=\s)")


def speaker_label(line: str) -> str | None:
    """Return what could be the label of a speaker at the start of `line`: up to four words."""
    match = _TURN_START.match(line)
    return match["label"] if match else None


def speakers_of(lines: Iterable[str]) -> frozenset[str]:
    """Return the labels that open turns in a text of these lines.

    A label starts with a capital letter, is a role such as "user", or opens two lines or more.
    """
    counts = Counter(label for label in map(speaker_label, lines) if label is not None)
    return frozenset(
        label
        for label, count in counts.items()
        if count > 1 or not label[0].islower() or _is_role(label)
    )


def _is_role(label: str) -> bool:
    return label.split(maxsplit=1)[0].casefold().rstrip("0123456789") in _ROLES


def opens_turn(line: str, speakers: frozenset[str]) -> bool:
    """Tell whether `line` starts a turn of its own: by a speaker's label or a time stamp."""
    return speaker_label(line) in speakers or _TIMED_LINE.match(line) is not None


def inline_turns(text: str, speakers: frozenset[str]) -> list[int]:
    """Return the offsets at which further turns start inside `text`, which starts with one.

    Parameters
    ----------
    text : str
        One or more lines, the first of which opens with a speaker's label.
    speakers : frozenset of str
        Labels that open a line somewhere. Others count only as roles, or as a single capital
        letter after another ("A: ... B: ..."), so that "The rule: no pets" stays one turn.
    """
    first = speaker_label(text) or ""
    offsets = []
    for match in _INLINE_LABEL.finditer(text):
        label = match["label"]
        is_letter = len(first) == len(label) == 1 and label.isupper()
        is_role = len(label) > 1 and _is_role(label)
        if is_letter or is_role or label in speakers:
            offsets.append(match.start())
    return offsets
