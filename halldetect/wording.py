"""Words of messages: counted things, and what a validation says without its library's prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Pydantic puts it before the message of every ValueError that a validator raises.
_PREFIX = "Value error, "


def counted(count: int, noun: str) -> str:
    """Return a number and its noun: ``1 audit``, ``2,000 audits``, ``0 times``.

    Parameters
    ----------
    count : int
        How many.
    noun : str
        In the singular; its plural has an s and nothing else.
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def fault_message(fault: Mapping[str, Any]) -> str:
    """Return what one fault of a pydantic ``ValidationError`` says, in the validator's words."""
    return str(fault["msg"]).removeprefix(_PREFIX)
