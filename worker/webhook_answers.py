"""What came of one request to a receiver of webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class AttemptOutcome(StrEnum):
    """How an attempt ended, in a few kinds that are known beforehand."""

    DELIVERED = "delivered"
    REDIRECTED = "redirected"
    REFUSED = "refused"  # 4xx, or a status that there is not
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    TLS = "tls"
    NO_HTTP = "no_http"
    TARGET = "target"  # it is not called: no public address, or none any more
    FAULT = "fault"  # of ours

    @classmethod
    def of_status(cls, status: int) -> AttemptOutcome:
        """Return what the status of an answer means."""
        return {2: cls.DELIVERED, 3: cls.REDIRECTED, 5: cls.SERVER_ERROR}.get(
            status // 100, cls.REFUSED
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request.

    Parameters
    ----------
    outcome : AttemptOutcome
        Its kind.
    status : int or None
        What the receiver answered, if it did.
    error : str or None
        Why it is no success; None for one.
    retry_after : timedelta or None
        How long the receiver wants to be left alone, if it says so.
    """

    outcome: AttemptOutcome
    status: int | None = None
    error: str | None = None
    retry_after: timedelta | None = None
