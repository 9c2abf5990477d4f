"""What can go wrong while the embedded stack starts or runs."""

from __future__ import annotations

from halldetect.errors import UnavailableError


class StackError(UnavailableError):
    """A part of the stack is missing or cannot run; the message says which, why and what to do."""
