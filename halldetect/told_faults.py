"""Errors as logs and other people may see them: what happened and where, and not about what.

The message of an error that nobody foresaw may quote a text under audit: a row that Postgres
refused, a key that a dictionary lacks. Only errors that we raise on purpose say what they say
everywhere.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, MutableMapping
from typing import Any

from halldetect.errors import HallDetectError


def told(error: BaseException) -> str:
    """Return the message of an error that was raised on purpose; of any other its kind."""
    if isinstance(error, HallDetectError):
        return str(error)
    kind = type(error)
    code = getattr(error, "sqlstate", None) or getattr(getattr(error, "orig", None), "sqlstate", "")
    number = error.errno if isinstance(error, OSError) else None
    details = [f"SQLSTATE {code}"] * bool(code) + [f"errno {number}"] * (number is not None)
    place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    name = f"{place}{kind.__qualname__}"
    return f"{name} ({', '.join(details)})" if details else name


def told_with_places(error: BaseException) -> str:
    """Return what `told` says of an error and of those behind it, each with its calls."""
    return "\n".join(_lines(error, set()))


def tell_faults(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Let a log entry have an ``exception`` in place of ``exc_info``; a processor of structlog."""
    found = event.pop("exc_info", None)
    error = _error_of(found)
    if error is not None:
        event["exception"] = told_with_places(error)
    return event


def _error_of(found: Any) -> BaseException | None:
    if isinstance(found, BaseException):
        return found
    if isinstance(found, tuple):
        return found[1] if isinstance(found[1], BaseException) else None
    return sys.exc_info()[1] if found else None


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if behind is not None and id(behind) not in seen:
        yield from _lines(behind, seen)
        yield "which led to:"
    if isinstance(error, BaseExceptionGroup):
        for number, one in enumerate(error.exceptions, start=1):
            yield f"{number} of {len(error.exceptions)} at once:"
            yield from _lines(one, seen)
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
    yield told(error)
