"""Webhooks as JSON: what comes in, and how they and their deliveries are described."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from api.schemas import NextCursor
from db.models import DeliveryState
from db.webhook_secrets import Rotated
from db.webhooks import StoredDelivery, StoredWebhook
from halldetect.webhook_targets import LONGEST_URL

DEFAULT_OVERLAP_SECONDS = 24 * 3600
LONGEST_OVERLAP_SECONDS = 365 * 24 * 3600

Secret = Annotated[
    str,
    Field(
        description="What its messages are signed with; it is not shown again. As Standard "
        "Webhooks writes it: `whsec_` and base64."
    ),
]


class WebhookBody(BaseModel):
    """A webhook to make."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: str = Field(
        max_length=LONGEST_URL,
        description="Whom to call when a batch is finished: https, and a public address.",
    )


class RotationBody(BaseModel):
    """How a webhook's secret is replaced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    overlap_seconds: int = Field(
        default=DEFAULT_OVERLAP_SECONDS,
        ge=0,
        le=LONGEST_OVERLAP_SECONDS,
        description="How long messages are signed with the secret that it had, too.",
    )


class DeliveryView(BaseModel):
    """One batch for one webhook."""

    id: str = Field(description="What it is sent with as `webhook-id`, at every attempt.")
    batch_id: str
    state: DeliveryState = Field(
        description="`waiting` for the batch, `due` until the receiver has taken it, `delivered`, "
        "or `failed` once it is not tried any more."
    )
    attempts: int = Field(description="Requests that were begun.")
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_status: int | None = Field(description="What the receiver answered last.")
    last_error: str | None = Field(description="Why that was no success.")
    finished_at: datetime | None

    @classmethod
    def of(cls, stored: StoredDelivery) -> Self:
        """Describe a delivery."""
        return cls(
            id=f"msg_{stored.message_id.hex}",
            batch_id=str(stored.batch_id),
            state=stored.state,
            attempts=stored.attempts,
            next_attempt_at=stored.next_attempt_at,
            last_attempt_at=stored.last_attempt_at,
            last_status=stored.last_status,
            last_error=stored.last_error,
            finished_at=stored.finished_at,
        )


class WebhookView(BaseModel):
    """An address that is told of every batch that its owner submits after making it."""

    id: str
    url: str
    created_at: datetime
    older_secrets_until: datetime | None = Field(
        description="Until when its messages are signed with secrets that were replaced, too."
    )
    deliveries: list[DeliveryView] = Field(description="Those of the last ten batches.")

    @classmethod
    def of(cls, stored: StoredWebhook) -> Self:
        """Describe a webhook."""
        return cls(
            id=str(stored.id),
            url=stored.url,
            created_at=stored.created_at,
            older_secrets_until=stored.older_secrets_until,
            deliveries=[DeliveryView.of(delivery) for delivery in stored.deliveries],
        )


class NewWebhook(BaseModel):
    """A webhook that was just made."""

    id: str
    url: str
    created_at: datetime
    secret: Secret

    @classmethod
    def of(cls, stored: StoredWebhook, secret: bytes) -> Self:
        """Describe it."""
        return cls(
            id=str(stored.id),
            url=stored.url,
            created_at=stored.created_at,
            secret=_written(secret),
        )


class NewSecret(BaseModel):
    """A webhook's secret that was just replaced."""

    id: str
    secret: Secret
    older_secrets_until: datetime = Field(
        description="Until then its messages are signed with what it had before, too."
    )

    @classmethod
    def of(cls, webhook_id: int, rotated: Rotated) -> Self:
        """Describe it."""
        return cls(
            id=str(webhook_id),
            secret=_written(rotated.secret),
            older_secrets_until=rotated.older_secrets_until,
        )


class WebhookPage(BaseModel):
    """Webhooks, newest first."""

    items: list[WebhookView]
    next_cursor: NextCursor


def _written(secret: bytes) -> str:
    return f"whsec_{base64.b64encode(secret).decode()}"
