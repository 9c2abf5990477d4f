"""The tables of webhooks: whom to tell that a batch is finished, and how far the telling is."""

from __future__ import annotations

import uuid
from enum import StrEnum

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment, one_of
from db.models.audits import Batch
from db.models.keys import ApiKey
from halldetect.webhook_targets import LONGEST_URL


class DeliveryState(StrEnum):
    """How far a delivery is."""

    WAITING = "waiting"  # for the batch to finish
    DUE = "due"  # the batch is finished, and the receiver has not taken it yet
    DELIVERED = "delivered"
    FAILED = "failed"  # it is not tried any more


class Webhook(Base):
    """An address that is told of every batch of one owner."""

    __tablename__ = "webhooks"
    __table_args__ = (
        CheckConstraint(f"length(url) BETWEEN 1 AND {LONGEST_URL}", name="url_length"),
    )

    id: Mapped[Id]
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id), index=True)  # whose it is
    url: Mapped[str] = mapped_column(Text)
    created_at: Mapped[CreatedAt]


class WebhookSecret(Base):
    """What messages of a webhook are signed with; rotation adds another.

    One that was replaced signs, too, until `expires_at`. It stands here as it is, since a signature
    cannot be made from a digest of it.
    """

    __tablename__ = "webhook_secrets"
    __table_args__ = (
        CheckConstraint("octet_length(secret) = 32", name="secret_length"),
        # The newest alone has no end.
        Index(
            "uq_webhook_secrets_newest",
            "webhook_id",
            unique=True,
            postgresql_where=text("expires_at IS NULL"),
        ),
    )

    id: Mapped[Id]
    webhook_id: Mapped[int] = mapped_column(ForeignKey(Webhook.id, ondelete="CASCADE"), index=True)
    secret: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Moment | None]


class WebhookDelivery(Base):
    """One batch for one webhook: stored with the batch, and never twice."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("webhook_id", "batch_id"),
        UniqueConstraint("message_id"),
        CheckConstraint("attempts >= 0", name="attempts_not_negative"),
        CheckConstraint("(state = 'due') = (next_attempt_at IS NOT NULL)", name="next_if_due"),
        CheckConstraint("(state = 'waiting') = (due_since IS NULL)", name="waiting_or_due_since"),
        CheckConstraint(
            "(state IN ('delivered', 'failed')) = (finished_at IS NOT NULL)",
            name="finished_if_final",
        ),
        CheckConstraint(
            "(attempts = 0) = (last_attempt_at IS NULL)"
            " AND (attempts > 0 OR last_status IS NULL)"
            " AND (attempts = 0 OR state <> 'waiting')",
            name="attempted_if_due",
        ),
        CheckConstraint("last_status BETWEEN 200 AND 999", name="status_range"),
        CheckConstraint(
            "state <> 'delivered'"
            " OR (attempts > 0 AND coalesce(last_status, 0) BETWEEN 200 AND 299"
            " AND last_error IS NULL)",
            name="success_if_delivered",
        ),
        CheckConstraint("state <> 'failed' OR last_error IS NOT NULL", name="error_if_failed"),
        Index("ix_webhook_deliveries_batch_id", "batch_id"),
        Index("ix_webhook_deliveries_waiting", "id", postgresql_where=text("state = 'waiting'")),
        Index(
            "ix_webhook_deliveries_due", "next_attempt_at", postgresql_where=text("state = 'due'")
        ),
    )

    id: Mapped[Id]
    webhook_id: Mapped[int] = mapped_column(ForeignKey(Webhook.id, ondelete="CASCADE"))
    batch_id: Mapped[int] = mapped_column(ForeignKey(Batch.id, ondelete="CASCADE"))
    # What receivers tell repetitions by: the same for every attempt.
    message_id: Mapped[uuid.UUID] = mapped_column(Uuid, server_default=func.gen_random_uuid())
    state: Mapped[DeliveryState] = mapped_column(
        one_of(DeliveryState, "state"), server_default=DeliveryState.WAITING.value
    )
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    created_at: Mapped[CreatedAt]
    next_attempt_at: Mapped[Moment | None]
    last_attempt_at: Mapped[Moment | None]
    last_status: Mapped[int | None] = mapped_column(SmallInteger)
    last_error: Mapped[str | None] = mapped_column(Text)
    finished_at: Mapped[Moment | None]
    due_since: Mapped[Moment | None]  # when it was found that the batch had finished
