"""Audits and their batches: what was asked, how far it is, and what came out."""

from __future__ import annotations

from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Computed,
    Date,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Text,
    UniqueConstraint,
    desc,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment, one_of
from db.models.inputs import Document, PolicyVersion
from db.models.keys import ApiKey
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome, Status

# Of audits that have not ended, in words for an index and for those who are to be served by it.
WAITING = "status IN ('queued', 'extracted')"


class Batch(Base):
    """Audits that were submitted together."""

    __tablename__ = "batches"
    __table_args__ = (
        CheckConstraint("total > 0", name="not_empty"),
        Index(
            "ix_batches_api_key_id_id",
            "api_key_id",
            "id",
            postgresql_where=text("api_key_id IS NOT NULL"),
        ),
    )

    id: Mapped[Id]
    total: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[CreatedAt]
    cancelled_at: Mapped[Moment | None]
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id))  # whose it is


class Audit(Base):
    """One response to audit: what was asked, how far it is, who works on it, what came out."""

    __tablename__ = "audits"
    __table_args__ = (
        UniqueConstraint("batch_id", "custom_id"),
        UniqueConstraint("batch_id", "line"),
        CheckConstraint("(batch_id IS NULL) = (line IS NULL)", name="line_in_batch"),
        CheckConstraint("line > 0", name="line_positive"),
        CheckConstraint("priority BETWEEN -100 AND 100", name="priority_range"),
        CheckConstraint("jsonb_typeof(metadata) = 'object'", name="metadata_object"),
        # How it ended, and nothing that another end would have.
        CheckConstraint("(status = 'failed') = (error IS NOT NULL)", name="error_if_failed"),
        CheckConstraint("(status = 'completed') = (outcome IS NOT NULL)", name="outcome_if_done"),
        CheckConstraint(
            "(status IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)",
            name="finished_if_final",
        ),
        CheckConstraint(
            "(coalesce(outcome, '') = 'scored') = (fedscore IS NOT NULL)", name="score_if_scored"
        ),
        CheckConstraint("(fedscore IS NULL) = (label IS NULL)", name="label_with_score"),
        CheckConstraint("fedscore BETWEEN 0 AND 1", name="fedscore_range"),
        CheckConstraint("status <> 'extracted' OR extracted_at IS NOT NULL", name="extracted_time"),
        CheckConstraint(
            "num_nulls(supported, contradicted, unsupported) ="
            " CASE WHEN status = 'completed' THEN 0 ELSE 3 END",
            name="counts_if_done",
        ),
        CheckConstraint(
            "least(supported, contradicted, unsupported, attempts, faults, fencing_token) >= 0",
            name="counts_not_negative",
        ),
        # Who works on it.
        CheckConstraint("(lease_owner IS NULL) = (lease_expires_at IS NULL)", name="lease_whole"),
        CheckConstraint("lease_owner IS NOT NULL OR NOT lease_begun", name="begun_if_leased"),
        CheckConstraint(
            "lease_owner IS NULL OR status IN ('queued', 'extracted')", name="lease_if_waiting"
        ),
        Index(
            "ix_audits_awaiting_extraction",
            desc("priority"),
            text("(batch_id IS NOT NULL)"),
            "id",
            postgresql_where=text("status = 'queued'"),
        ),
        Index(
            "ix_audits_awaiting_verification",
            desc("priority"),
            text("(batch_id IS NOT NULL)"),
            "id",
            postgresql_where=text("status = 'extracted'"),
        ),
        Index(
            "ix_audits_leased",
            "lease_expires_at",
            postgresql_where=text("lease_owner IS NOT NULL"),
        ),
        Index("ix_audits_status_id", "status", "id", postgresql_include=["faults"]),
        # All that audits are listed by: what is rare or old is looked for here, not in the table.
        Index(
            "ix_audits_id_listed",
            "id",
            postgresql_include=[
                "submitted_at",
                "policy_id",
                "api_key_id",
                "status",
                "label",
                "outcome",
            ],
        ),
        Index(
            "ix_audits_unfinished_batch_id",
            "batch_id",
            postgresql_where=text(f"{WAITING} AND batch_id IS NOT NULL"),
        ),
        Index(
            "ix_audits_api_key_id_waiting",
            "api_key_id",
            postgresql_where=text(f"api_key_id IS NOT NULL AND {WAITING}"),
        ),
        Index("ix_audits_custom_id", "custom_id", postgresql_where=text("custom_id IS NOT NULL")),
        Index(
            "ix_audits_api_key_id_id",
            "api_key_id",
            "id",
            postgresql_where=text("api_key_id IS NOT NULL"),
        ),
        Index(
            "ix_audits_finished_at", "finished_at", postgresql_where=text("finished_at IS NOT NULL")
        ),
    )

    id: Mapped[Id]
    batch_id: Mapped[int | None] = mapped_column(ForeignKey(Batch.id))
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id))  # whose it is
    line: Mapped[int | None] = mapped_column(Integer)
    custom_id: Mapped[str | None] = mapped_column(Text)
    document_id: Mapped[int] = mapped_column(ForeignKey(Document.id), index=True)
    policy_id: Mapped[int] = mapped_column(ForeignKey(PolicyVersion.id))
    response: Mapped[str] = mapped_column(Text)
    context: Mapped[str | None] = mapped_column(Text)
    # `metadata` is taken by SQLAlchemy.
    caller_metadata: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'")
    )
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    submitted_at: Mapped[CreatedAt]
    # Which partition its probabilities are in.
    month: Mapped[date] = mapped_column(
        Date,
        Computed(
            "CAST(date_trunc('month', submitted_at AT TIME ZONE 'UTC') AS date)", persisted=True
        ),
    )

    status: Mapped[Status] = mapped_column(
        one_of(Status, "status"), server_default=Status.QUEUED.value
    )
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    faults: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    worker_lost: Mapped[bool] = mapped_column(Boolean, server_default=false())
    lease_owner: Mapped[str | None] = mapped_column(Text)
    lease_expires_at: Mapped[Moment | None]
    lease_begun: Mapped[bool] = mapped_column(Boolean, server_default=false())
    fencing_token: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    extraction_started_at: Mapped[Moment | None]
    extracted_at: Mapped[Moment | None]
    verification_started_at: Mapped[Moment | None]
    finished_at: Mapped[Moment | None]

    outcome: Mapped[Outcome | None] = mapped_column(one_of(Outcome, "outcome"))
    fedscore: Mapped[float | None] = mapped_column(DOUBLE_PRECISION)
    label: Mapped[Label | None] = mapped_column(one_of(Label, "label"))
    deciding_claim: Mapped[int | None] = mapped_column(Integer)
    supported: Mapped[int | None] = mapped_column(Integer)
    contradicted: Mapped[int | None] = mapped_column(Integer)
    unsupported: Mapped[int | None] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(Text)
