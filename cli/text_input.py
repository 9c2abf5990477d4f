"""Reading the user's texts: UTF-8 whatever the locale, every other character as it is."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path
from typing import BinaryIO

from halldetect.errors import InputError, LimitError
from halldetect.record import text_fault

STANDARD_INPUT = "-"
_BLOCK = 1 << 20
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_source(argument: str, *, max_characters: int) -> str:
    """Read the source; see `read_text`.

    Raises
    ------
    InputError
        Naming the file, when it cannot be read, is not UTF-8, or is blank.
    """
    text = read_text(argument, max_characters=max_characters)
    if not text.strip():
        raise InputError(
            f"{display_name(argument)}: the source is empty or only white space: there is nothing "
            "to audit against"
        )
    return text


def read_text(argument: str, *, max_characters: int) -> str:
    """Read a text file, or standard input for ``-``.

    A byte order mark at the start is dropped; line ends stay as they are, so that offsets count
    the characters of the file. No more is read than so many characters can take, so that an
    endless stream is refused too.

    Raises
    ------
    InputError
        Naming the file, when it cannot be read, is not UTF-8, or has a NUL character.
    LimitError
        When it has more bytes than `max_characters` can take.
    """
    name = display_name(argument)
    longest = 4 * max_characters + 3  # UTF-8 takes up to four bytes a character, the mark three
    content = _read_bytes(argument, longest + 1)
    if len(content) > longest:
        raise LimitError(
            f"{name}: has more than {max_characters:,} characters, the limit "
            "(HALLDETECT_MAX_CHARACTERS)"
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: {_not_utf8(content, error.start)}") from None
    text = text.removeprefix("\ufeff")
    fault = text_fault(text)
    if fault:
        raise InputError(f"{name}: {fault}")
    return text


def display_name(argument: str) -> str:
    """Return what messages call an input."""
    return "standard input" if argument == STANDARD_INPUT else argument


def unreadable(name: str, error: OSError) -> InputError:
    """Word why a file cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name}: there is no such file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name}: is a directory, not a file")
    return InputError(f"{name}: cannot be read ({error.strerror or error})")


def _read_bytes(argument: str, limit: int) -> bytes:
    try:
        if argument == STANDARD_INPUT:
            return _read_at_most(sys.stdin.buffer, limit)
        with Path(argument).open("rb") as file:
            return _read_at_most(file, limit)
    except OSError as error:
        raise unreadable(display_name(argument), error) from None


def _read_at_most(file: BinaryIO, limit: int) -> bytes:
    content = bytearray()
    while block := file.read(min(_BLOCK, limit - len(content))):
        content += block
    return bytes(content)


def _not_utf8(content: bytes, position: int) -> str:
    if content.startswith(_UTF16_MARKS):
        return (
            "is UTF-16 by its first bytes, not UTF-8; convert it, for example with "
            "`iconv -f UTF-16 -t UTF-8`"
        )
    return (
        f"byte {position + 1} (0x{content[position]:02x}) is not UTF-8; if the text is Latin-1 or "
        "Windows-1252, convert it, for example with `iconv -f WINDOWS-1252 -t UTF-8`"
    )
