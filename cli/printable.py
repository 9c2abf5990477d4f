"""Text that others wrote, made safe to show: no control code of theirs reaches the terminal."""

from __future__ import annotations

import re
import unicodedata

_WHITE_SPACE = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# Joiners and the soft hyphen are parts of words and emoji; the other format characters can
# reorder or hide what is shown.
_HARMLESS_FORMATS = frozenset("\u00ad\u200c\u200d\u2060")
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Return `text` with line ends and tabs as spaces and control characters escaped.

    A terminal escape sequence is shown as ``\x1b[31m``, a right-to-left override as ``\u202e``.
    """
    return "".join(map(_shown, _WHITE_SPACE.sub(" ", text)))


def shortened(text: str, limit: int | None) -> str:
    """Return at most `limit` characters of `text`, saying how many are left out; None: all."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit:,} more characters]"


def _shown(character: str) -> str:
    if character in _HARMLESS_FORMATS or unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
