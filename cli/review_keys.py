"""What a reviewer can say of a claim, and how it is read: a key at a terminal, or a line."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TextIO

from halldetect.scoring.verdict import Verdict


class Key(StrEnum):
    """What a reviewer presses."""

    AGREE = "a"
    CORRECT = "c"
    UNSUPPORTED = "u"
    CONTRADICTED = "d"
    SKIP = "s"
    QUIT = "q"


KEYS = {
    Key.AGREE: "agree",
    Key.CORRECT: "correct after all",
    Key.UNSUPPORTED: "unsupported",
    Key.CONTRADICTED: "contradicted",
    Key.SKIP: "skip",
    Key.QUIT: "quit",
}
_VERDICTS = {
    Key.CORRECT: Verdict.SUPPORTED,
    Key.UNSUPPORTED: Verdict.UNSUPPORTED,
    Key.CONTRADICTED: Verdict.CONTRADICTED,
}
_END_OF_INPUT = "\x04"  # what Ctrl-D sends when single keys are read


def verdict_of(key: Key, stands: Verdict) -> Verdict | None:
    """Return the verdict that a key asks for; None for one that says nothing about the claim."""
    return stands if key is Key.AGREE else _VERDICTS.get(key)


def read_key(stream: TextIO) -> Key | None:
    """Return the key that was pressed, or the first letter of a line; None if it means nothing.

    The end of the input quits.
    """
    typed = _pressed(stream.fileno()) if stream.isatty() else stream.readline()
    if typed in ("", _END_OF_INPUT):
        return Key.QUIT
    letter = typed.strip()[:1].lower()
    return Key(letter) if letter in set(Key) else None


def _pressed(terminal: int) -> str:
    """Return one key as soon as it is pressed; what was typed before is forgotten.

    So no key is taken for an answer to a claim that was not on the screen yet.
    """
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        return os.read(terminal, 1).decode("ascii", errors="replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
