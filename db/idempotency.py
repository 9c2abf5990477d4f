"""Requests that may be sent twice: the first answer is kept with what the request stored.

Key and rows are committed together, and "in progress" is a lock of the transaction: a server that
dies in between leaves neither, and the repetition is a first request again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
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


def begin(
    session: Session, key: str, request_sha256: bytes, api_key_id: int | None = None
) -> Replay | None:
    """Take a key for the rest of the transaction, or return the answer that it already has.

    Keys are the owner's own: others may take the same one.

    Raises
    ------
    KeyInProgress
        When another transaction has taken it.
    KeyReused
        When it was used for a request of another digest.
    """
    # Other locks of ours have positive seeds.
    lock = func.hashtextextended(key, -(api_key_id or 0))
    if not session.scalar(select(func.pg_try_advisory_xact_lock(lock))):
        raise KeyInProgress("a request with this Idempotency-Key is in progress: try again soon")
    row = session.scalar(
        select(IdempotencyKey).where(
            IdempotencyKey.key == key, IdempotencyKey.api_key_id == api_key_id
        )
    )
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
    api_key_id: int | None = None,
) -> None:
    """Keep the answer, in the transaction that stores what it speaks of."""
    session.execute(
        insert(IdempotencyKey).values(
            key=key,
            request_sha256=request_sha256,
            status=status,
            headers=dict(headers),
            body=body,
            api_key_id=api_key_id,
        )
    )
