"""Requests that may be sent twice: the first answer is kept with what the request stored.

Key and rows are committed together, and "in progress" is a lock of the transaction: a server that
dies in between leaves neither, and the repetition is a first request again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.models import IdempotencyKey
from halldetect.errors import HallDetectError


class KeyInProgress(HallDetectError):
    """A request with this key is being answered right now."""


class KeyReused(HallDetectError):
    """The key belongs to another request."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The first answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def begin(session: Session, key: str, request_sha256: bytes) -> Replay | None:
    """Take a key for the rest of the transaction, or return the answer that it already has.

    Raises
    ------
    KeyInProgress
        When another transaction has taken it.
    KeyReused
        When it was used for a request of another digest.
    """
    if not session.scalar(select(func.pg_try_advisory_xact_lock(func.hashtextextended(key, 0)))):
        raise KeyInProgress("a request with this Idempotency-Key is in progress: try again soon")
    row = session.get(IdempotencyKey, key)
    if row is None:
        return None
    if row.request_sha256 != request_sha256:
        raise KeyReused("this Idempotency-Key was used for another request: take a new one")
    return Replay(row.status, row.headers, row.body)


def remember(
    session: Session,
    key: str,
    request_sha256: bytes,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> None:
    """Keep the answer, in the transaction that stores what it speaks of."""
    session.execute(
        insert(IdempotencyKey).values(
            key=key,
            request_sha256=request_sha256,
            status=status,
            headers=dict(headers),
            body=body,
        )
    )


def forget_older_than(session: Session, age: timedelta) -> None:
    """Delete keys that nobody will repeat any more."""
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < func.now() - age))
