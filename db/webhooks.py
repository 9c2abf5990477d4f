"""Webhooks: made, listed and deleted by their owners, each with what became of its last batches."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from db.models import DeliveryState, Webhook, WebhookDelivery, WebhookSecret
from db.ownership import UNRESTRICTED, Caller
from db.webhook_secrets import add_secret
from halldetect.errors import InputError

MOST_WEBHOOKS = 10
"""Of one owner: each is called for every batch."""

LISTED_DELIVERIES = 10
# Half of the key of an owner's lock; idempotency keys have seed 0, rescorings seed 1.
_LOCK_SEED = 2

# The lock keeps what a deletion is about to take away out of it.
_EXPECT = text(
    """
    INSERT INTO halldetect.webhook_deliveries (webhook_id, batch_id)
    SELECT id, :batch_id FROM (
        SELECT id FROM halldetect.webhooks
        WHERE api_key_id IS NOT DISTINCT FROM CAST(:api_key_id AS bigint)
        ORDER BY id FOR KEY SHARE
    ) AS w
    """
)
_EXPECT_AGAIN = text(
    """
    UPDATE halldetect.webhook_deliveries SET state = 'waiting', message_id = gen_random_uuid(),
        attempts = 0, due_since = NULL, next_attempt_at = NULL, last_attempt_at = NULL,
        last_status = NULL, last_error = NULL, finished_at = NULL
    WHERE batch_id = ANY(:batch_ids)
    """
)
_LAST_DELIVERIES = text(
    """
    SELECT d.* FROM unnest(CAST(:ids AS bigint[])) AS w (id)
    CROSS JOIN LATERAL (
        SELECT * FROM halldetect.webhook_deliveries
        WHERE webhook_id = w.id ORDER BY batch_id DESC LIMIT :most
    ) AS d ORDER BY d.webhook_id, d.batch_id DESC
    """
).columns(*WebhookDelivery.__table__.columns)


class TooManyWebhooks(InputError):
    """An owner has as many webhooks as may be; the message says how many."""


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """One batch for one webhook.

    Parameters
    ----------
    message_id : UUID
        What the receiver tells repetitions by.
    batch_id : int
        The batch.
    state : DeliveryState
        How far it is.
    attempts : int
        Requests that were begun.
    next_attempt_at, last_attempt_at, finished_at : datetime or None
        When it is tried next, when it was last, and when it ended.
    last_status : int or None
        What the receiver answered last.
    last_error : str or None
        Why the last attempt was not a success.
    """

    message_id: uuid.UUID
    batch_id: int
    state: DeliveryState
    attempts: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredWebhook:
    """A webhook without its secret.

    Parameters
    ----------
    id : int
        The webhook.
    url : str
        Whom it calls.
    created_at : datetime
        When it was made.
    older_secrets_until : datetime or None
        Until when its messages are signed with secrets that were replaced, too, if they still are.
    deliveries : tuple of StoredDelivery
        Those of the newest batches, newest first.
    """

    id: int
    url: str
    created_at: datetime
    older_secrets_until: datetime | None
    deliveries: tuple[StoredDelivery, ...] = ()


def create_webhook(
    session: Session, url: str, caller: Caller = UNRESTRICTED
) -> tuple[StoredWebhook, bytes]:
    """Store a webhook of the caller's and return it with its secret.

    Raises
    ------
    TooManyWebhooks
        The caller has as many as may be.
    """
    owner = caller.api_key_id
    lock = func.hashtextextended(f"webhooks of {owner}", _LOCK_SEED)
    session.execute(select(func.pg_advisory_xact_lock(lock)))
    is_owners = Webhook.api_key_id.is_not_distinct_from(owner)
    if session.scalars(select(func.count()).select_from(Webhook).where(is_owners)).one() >= (
        MOST_WEBHOOKS
    ):
        raise TooManyWebhooks(
            f"there are {MOST_WEBHOOKS} webhooks of this owner already: delete one"
        )
    row = Webhook(api_key_id=owner, url=url)
    session.add(row)
    session.flush()
    session.refresh(row)
    return StoredWebhook(row.id, row.url, row.created_at, None), add_secret(session, row.id)


def list_webhooks(
    session: Session, *, before_id: int | None, limit: int, caller: Caller = UNRESTRICTED
) -> list[StoredWebhook]:
    """Return the caller's newest webhooks with their last deliveries, from below `before_id` on."""
    older_until = (
        select(func.max(WebhookSecret.expires_at))
        .where(WebhookSecret.webhook_id == Webhook.id, WebhookSecret.expires_at > func.now())
        .scalar_subquery()
    )
    page = select(Webhook, older_until).where(caller.sees(Webhook.api_key_id))
    if before_id is not None:
        page = page.where(Webhook.id < before_id)
    rows = session.execute(page.order_by(Webhook.id.desc()).limit(limit)).all()
    deliveries = _last_deliveries(session, [webhook.id for webhook, _ in rows])
    return [
        StoredWebhook(
            webhook.id, webhook.url, webhook.created_at, until, tuple(deliveries[webhook.id])
        )
        for webhook, until in rows
    ]


def delete_webhook(session: Session, webhook_id: int, *, caller: Caller = UNRESTRICTED) -> bool:
    """Delete a webhook with its secret and its deliveries; False when the caller has none such.

    What is being sent at this moment may still arrive.
    """
    deleted = session.execute(
        delete(Webhook)
        .where(Webhook.id == webhook_id, caller.sees(Webhook.api_key_id))
        .returning(Webhook.id)
        .execution_options(synchronize_session=False)
    )
    return deleted.first() is not None


def expect_deliveries(session: Session, batch_id: int, api_key_id: int | None) -> None:
    """Note that each webhook of a new batch's owner is to be told when the batch is finished.

    Webhooks that are made later are not told of it.
    """
    session.execute(_EXPECT, {"batch_id": batch_id, "api_key_id": api_key_id})


def expect_deliveries_again(session: Session, batch_ids: Iterable[int]) -> None:
    """Note that batches are in progress again, and will finish anew: a new message each.

    Comes after the change of their audits, in the same transaction.
    """
    session.execute(_EXPECT_AGAIN, {"batch_ids": sorted(batch_ids)})


def _last_deliveries(
    session: Session, webhook_ids: Sequence[int]
) -> defaultdict[int, list[StoredDelivery]]:
    found: defaultdict[int, list[StoredDelivery]] = defaultdict(list)
    rows = session.scalars(
        select(WebhookDelivery).from_statement(_LAST_DELIVERIES),
        {"ids": list(webhook_ids), "most": LISTED_DELIVERIES},
    )
    for row in rows:
        found[row.webhook_id].append(_stored(row))
    return found


def _stored(row: WebhookDelivery) -> StoredDelivery:
    return StoredDelivery(
        message_id=row.message_id,
        batch_id=row.batch_id,
        state=row.state,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        last_attempt_at=row.last_attempt_at,
        last_status=row.last_status,
        last_error=row.last_error,
        finished_at=row.finished_at,
    )
