"""When a delivery that failed is tried again: pauses that grow, and what receivers ask for."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MOST_ATTEMPTS = 8
LONGEST_ASKED = timedelta(hours=24)
"""More than any pause of ours: a receiver that asks for more is tried again after this."""

_FIRST_PAUSE_SECONDS = 15
_PAUSES_GROW_BY = 4
_JITTER = 0.2
# The answers that come with a time to wait (RFC 9110, 10.2.3; RFC 6585, 4).
_ASKING = (429, 503)

_random = secrets.SystemRandom()


def pause_after(attempt: int, asked: timedelta | None = None) -> timedelta | None:
    """Return how long to wait after a failed attempt, counted from 1; None after the last.

    The pauses grow from a quarter of a minute to 17 hours and together take about a day; chance
    keeps receivers from getting everything at once when they are back. What a receiver asks for
    lengthens a pause, up to `LONGEST_ASKED`, and never shortens one.
    """
    if attempt >= MOST_ATTEMPTS:
        return None
    seconds = _FIRST_PAUSE_SECONDS * _PAUSES_GROW_BY ** (attempt - 1)
    own = timedelta(seconds=seconds * _random.uniform(1 - _JITTER, 1 + _JITTER))
    return own if asked is None else max(own, min(asked, LONGEST_ASKED))


def asked_pause(status: int, headers: Mapping[str, str]) -> timedelta | None:
    """Return the time of ``Retry-After``, where an answer with this status has one that is any.

    Parameters
    ----------
    status : int
        Of the answer; 429 and 503 ask for a pause.
    headers : Mapping
        Of the answer, the names in small letters.
    """
    if status not in _ASKING:
        return None
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        # Longer numbers would fit nowhere, and are cut to the longest pause anyway.
        return timedelta(seconds=int(text)) if len(text) <= 9 else LONGEST_ASKED
    until = _moment(text)
    if until is None:
        return None
    # By the clock that wrote the other moment, if it tells: ours may differ.
    answered_at = _moment(headers.get("date", "")) or datetime.now(UTC)
    return max(until - answered_at, timedelta())


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError, IndexError):  # a receiver may send anything
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
