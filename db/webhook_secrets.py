"""Secrets of webhooks: made, replaced while receivers still know the old one, and forgotten."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.orm import Session

from db.models import Webhook, WebhookSecret
from db.ownership import UNRESTRICTED, Caller
from halldetect.errors import InputError

MOST_SECRETS = 5
"""Of one webhook at once: each is a signature in the header of every message."""

_SECRET_BYTES = 32


class TooManySecrets(InputError):
    """As many secrets sign as may; the message says what helps."""


@dataclass(frozen=True, slots=True)
class Rotated:
    """A webhook's new secret.

    Parameters
    ----------
    secret : bytes
        What its messages are signed with from now on.
    older_secrets_until : datetime
        Until when they are signed with what it had before, too, at the latest.
    """

    secret: bytes
    older_secrets_until: datetime


def add_secret(session: Session, webhook_id: int) -> bytes:
    """Give a webhook a secret that has no end; none may be there."""
    secret = secrets.token_bytes(_SECRET_BYTES)
    session.add(WebhookSecret(webhook_id=webhook_id, secret=secret))
    session.flush()
    return secret


def rotate_secret(
    session: Session, webhook_id: int, overlap: timedelta, *, caller: Caller = UNRESTRICTED
) -> Rotated | None:
    """Give a webhook a new secret; None when the caller has no webhook of that id.

    The secrets it had sign, too, for `overlap` from now on, or as long as an earlier rotation said,
    if that ends sooner.

    Raises
    ------
    TooManySecrets
        So many sign already.
    """
    owned = select(Webhook.id).where(Webhook.id == webhook_id, caller.sees(Webhook.api_key_id))
    if session.scalar(owned.with_for_update(key_share=True)) is None:
        return None
    ends_at = session.scalars(select(func.clock_timestamp() + overlap)).one()
    session.execute(
        update(WebhookSecret)
        .where(
            WebhookSecret.webhook_id == webhook_id,
            or_(WebhookSecret.expires_at.is_(None), WebhookSecret.expires_at > ends_at),
        )
        .values(expires_at=ends_at)
        .execution_options(synchronize_session=False)
    )
    signing = select(func.count()).where(WebhookSecret.webhook_id == webhook_id, ~_is_over())
    if session.scalars(signing).one() >= MOST_SECRETS:
        raise TooManySecrets(
            f"messages of webhook {webhook_id} are signed with {MOST_SECRETS} secrets already: "
            "rotate again when one of them has ended, or with a shorter overlap"
        )
    return Rotated(add_secret(session, webhook_id), ends_at)


def forget_expired_secrets(session: Session) -> None:
    """Delete what signs nothing any more: whoever reads a copy of the database learns less."""
    session.execute(
        delete(WebhookSecret).where(_is_over()).execution_options(synchronize_session=False)
    )


def _is_over() -> ColumnElement[bool]:
    return func.coalesce(WebhookSecret.expires_at <= func.clock_timestamp(), False)
