"""Messages of errors, fit to be stored: bounded, and of characters that Postgres takes."""

from __future__ import annotations

LONGEST_ERROR = 2_000
"""Characters. An error that nobody foresaw may quote a document, or all that it was given."""


def storable_error(message: str) -> str:
    """Return a message as it is stored; what is left out of a long one is told."""
    text = message.replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= LONGEST_ERROR:
        return text
    note = f" ... (cut: the message has {len(text):,} characters)"
    return text[: LONGEST_ERROR - len(note)] + note
