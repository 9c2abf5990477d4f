"""Deliveries on their way: found when their batch is finished, claimed, and settled.

A claim moves the next attempt on before anything is sent. So whoever is killed while sending has
only delayed the next attempt, and of two workers one finds nothing to send. What is written
afterwards names the attempt: it is lost if the batch was retried or another attempt begun since.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, and_, func, literal_column, select, text, update
from sqlalchemy.orm import Session

from db.models import DeliveryState, WebhookDelivery
from db.webhooks import expect_deliveries_again

KEY_REVOKED = "the API key that the webhook belongs to was revoked"
_LOOKED_AT = 20_000

# The statuses stand in the text, so that the planner knows that the partial index will do.
_MARK_DUE = text(
    """
    WITH looked AS (
        SELECT id FROM halldetect.webhook_deliveries
        WHERE state = 'waiting' AND id > :after_id ORDER BY id LIMIT :most
    ), finished AS (
        SELECT d.id FROM looked JOIN halldetect.webhook_deliveries AS d USING (id)
        WHERE d.state = 'waiting' AND NOT EXISTS (
            SELECT FROM halldetect.audits AS a
            WHERE a.batch_id = d.batch_id AND a.status IN ('queued', 'extracted')
        )
        FOR UPDATE OF d SKIP LOCKED
    ), marked AS (
        UPDATE halldetect.webhook_deliveries AS d
        SET state = 'due', next_attempt_at = clock_timestamp(), due_since = clock_timestamp()
        FROM finished WHERE d.id = finished.id RETURNING d.id
    )
    SELECT (SELECT count(*) FROM marked) AS marked, (SELECT count(*) FROM looked) AS looked,
        (SELECT max(id) FROM looked) AS last_id
    """
)
# One row that waits may be the last of millions that do not: no estimate makes up for that.
_USE_INDEXES = text("SET LOCAL enable_seqscan = off")
_FAIL_REVOKED = text(
    """
    UPDATE halldetect.webhook_deliveries AS d
    SET state = 'failed', next_attempt_at = NULL, finished_at = clock_timestamp(),
        last_error = :error
    FROM halldetect.webhooks AS w JOIN halldetect.api_keys AS k ON k.id = w.api_key_id
    WHERE d.state = 'due' AND w.id = d.webhook_id AND k.revoked_at IS NOT NULL
    """
)
_CLAIM = text(
    """
    WITH chosen AS (
        SELECT d.id, w.url, w.api_key_id, ARRAY(
            SELECT s.secret FROM halldetect.webhook_secrets AS s
            WHERE s.webhook_id = w.id
                AND coalesce(s.expires_at > statement_timestamp(), true)
            ORDER BY s.id DESC
        ) AS secrets
        FROM halldetect.webhook_deliveries AS d
        JOIN halldetect.webhooks AS w ON w.id = d.webhook_id
        LEFT JOIN halldetect.api_keys AS k ON k.id = w.api_key_id
        WHERE d.state = 'due' AND d.next_attempt_at <= statement_timestamp()
            AND k.revoked_at IS NULL
            AND coalesce(w.api_key_id, 0) <> ALL(CAST(:busy_owners AS bigint[]))
        ORDER BY d.next_attempt_at LIMIT 1 FOR UPDATE OF d SKIP LOCKED
    )
    UPDATE halldetect.webhook_deliveries AS d
    SET attempts = d.attempts + 1, last_attempt_at = clock_timestamp(), last_status = NULL,
        last_error = 'it was not recorded how the attempt ended',
        next_attempt_at = clock_timestamp() + make_interval(secs => :hold_seconds)
    FROM chosen WHERE d.id = chosen.id
    RETURNING d.id, d.webhook_id, d.batch_id, d.message_id, d.attempts AS attempt,
        d.last_attempt_at AS sent_at, chosen.url, chosen.secrets,
        coalesce(chosen.api_key_id, 0) AS owner
    """
)


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that is to be tried now, by whoever claimed it.

    Parameters
    ----------
    id, webhook_id, batch_id : int
        What of whose.
    message_id : UUID
        The same for every attempt.
    attempt : int
        Counted from 1.
    sent_at : datetime
        Now, by the database's clock.
    url : str
        Where to.
    secrets : tuple of bytes
        What to sign with, the newest first.
    owner : int
        The API key that the webhook belongs to; 0 for nobody.
    """

    id: int
    webhook_id: int
    batch_id: int
    message_id: uuid.UUID
    attempt: int
    sent_at: datetime
    url: str
    secrets: tuple[bytes, ...]
    owner: int

    def __repr__(self) -> str:  # secrets, and URLs that hold some, are in no log
        return f"ClaimedDelivery(webhook_id={self.webhook_id}, batch_id={self.batch_id})"


def mark_due(session: Session, after_id: int = 0) -> tuple[int, int]:
    """Let deliveries be tried whose batches have nothing left that waits.

    A call looks at so many at a time that a sweep stays short.

    Parameters
    ----------
    after_id : int
        Where the call before ended.

    Returns
    -------
    tuple
        How many are due now, and where the next call goes on: at the beginning, once all were seen.
    """
    session.execute(_USE_INDEXES)
    found = session.execute(_MARK_DUE, {"after_id": after_id, "most": _LOOKED_AT}).one()
    return found.marked, found.last_id if found.looked == _LOOKED_AT else 0


def is_any_due(session: Session) -> bool:
    """Tell whether a delivery should be tried now."""
    due = select(WebhookDelivery.id).where(
        WebhookDelivery.state == literal_column("'due'"),  # as in the partial index
        WebhookDelivery.next_attempt_at <= func.statement_timestamp(),
    )
    return session.scalar(due.limit(1)) is not None


def fail_revoked(session: Session) -> int:
    """End the deliveries of keys that were revoked: nobody is told on their behalf any more."""
    return _count(session.execute(_FAIL_REVOKED, {"error": KEY_REVOKED}))


def claim_delivery(
    session: Session, *, hold_seconds: float, busy_owners: Collection[int] = ()
) -> ClaimedDelivery | None:
    """Take the delivery that is due longest, and count an attempt; None when none is due.

    Parameters
    ----------
    hold_seconds : float
        When it is due again if nothing is heard of the attempt.
    busy_owners : collection of int
        Whose deliveries are left for later.
    """
    found = session.execute(
        _CLAIM, {"hold_seconds": hold_seconds, "busy_owners": sorted(busy_owners)}
    ).one_or_none()
    if found is None:
        return None
    return ClaimedDelivery(**{**found._mapping, "secrets": tuple(found.secrets)})


def put_back(session: Session, claimed: ClaimedDelivery) -> None:
    """Let a delivery wait again whose batch turns out to be in progress: it was retried."""
    expect_deliveries_again(session, [claimed.batch_id])


def record_success(session: Session, claimed: ClaimedDelivery, status: int) -> bool:
    """Note that the receiver has it; False when the attempt is not the last any more."""
    return _settle(
        session, claimed, state=DeliveryState.DELIVERED, last_status=status, last_error=None
    )


def record_failure(
    session: Session,
    claimed: ClaimedDelivery,
    *,
    status: int | None,
    error: str,
    pause: timedelta | None,
) -> bool:
    """Note that an attempt failed; False when it is not the last any more.

    Parameters
    ----------
    status : int or None
        What the receiver answered, if it did.
    error : str
        Why it is no success, in a few words of our own.
    pause : timedelta or None
        When to try again; None for never.
    """
    if pause is None:
        return _settle(
            session, claimed, state=DeliveryState.FAILED, last_status=status, last_error=error
        )
    return _write(
        session,
        claimed,
        next_attempt_at=func.clock_timestamp() + pause,
        last_status=status,
        last_error=error,
    )


def _settle(session: Session, claimed: ClaimedDelivery, **values: Any) -> bool:
    return _write(
        session, claimed, next_attempt_at=None, finished_at=func.clock_timestamp(), **values
    )


def _write(session: Session, claimed: ClaimedDelivery, **values: Any) -> bool:
    written = session.execute(
        update(WebhookDelivery)
        .where(_is_attempt(claimed))
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    return _count(written) == 1


def _is_attempt(claimed: ClaimedDelivery) -> ColumnElement[bool]:
    return and_(
        WebhookDelivery.id == claimed.id,
        WebhookDelivery.message_id == claimed.message_id,
        WebhookDelivery.attempts == claimed.attempt,
        WebhookDelivery.state == DeliveryState.DUE,
    )


def _count(result: Any) -> int:
    if not isinstance(result, CursorResult):
        raise TypeError(f"{type(result).__name__} has no number of rows")
    return result.rowcount
