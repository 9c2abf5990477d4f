"""Texts that nobody has checked, fit to be stored: a model's own words, and messages of errors."""

from __future__ import annotations

LONGEST_ERROR = 2_000
"""Characters. An error that nobody foresaw may quote a document, or all that it was given."""


def storable(text: str) -> str:
    """Return a text of characters that Postgres takes: it refuses NUL and half surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode("utf-8")


def storable_error(message: str) -> str:
    """Return a message as it is stored; what is left out of a long one is told."""
    text = storable(message)
    if len(text) <= LONGEST_ERROR:
        return text
    note = f" ... (cut: the message has {len(text):,} characters)"
    return text[: LONGEST_ERROR - len(note)] + note
