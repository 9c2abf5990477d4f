"""Tables of what is said about audits afterwards: other scores, and what reviewers think."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, DOUBLE_PRECISION, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment, one_of
from db.models.audits import Audit
from db.models.inputs import PolicyVersion
from db.models.keys import ApiKey
from halldetect.scoring.verdict import Label, Verdict


class RescoringState(StrEnum):
    """How far a rescoring is."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Rescoring(Base):
    """One request to score a selection of audits under a policy, and how far it has come.

    `last_audit_id` is where it goes on after an interruption: audits are scored in the order of
    their ids. `skips` counts the audits that cannot be scored, by the reason, each with an example.
    """

    __tablename__ = "rescorings"
    __table_args__ = (
        CheckConstraint("jsonb_typeof(selection) = 'object'", name="selection_object"),
        CheckConstraint("jsonb_typeof(skips) = 'object'", name="skips_object"),
        CheckConstraint(
            "least(total, scored, present, skipped, last_audit_id) >= 0", name="counts"
        ),
        CheckConstraint("scored + present + skipped <= total", name="counts_within_total"),
        CheckConstraint("(state = 'failed') = (error IS NOT NULL)", name="error_if_failed"),
        CheckConstraint(
            "(state IN ('completed', 'failed')) = (finished_at IS NOT NULL)",
            name="finished_if_final",
        ),
    )

    id: Mapped[Id]
    policy_id: Mapped[int] = mapped_column(ForeignKey(PolicyVersion.id))
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id))  # whose it is
    selection: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[RescoringState] = mapped_column(
        one_of(RescoringState, "state"), server_default=RescoringState.WAITING.value
    )
    total: Mapped[int] = mapped_column(Integer)
    scored: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    present: Mapped[int] = mapped_column(Integer, server_default=text("0"))  # scored before
    skipped: Mapped[int] = mapped_column(Integer, server_default=text("0"))  # cannot be scored
    skips: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    last_audit_id: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[CreatedAt]
    active_at: Mapped[Moment] = mapped_column(server_default=func.now())  # last progress or wake-up
    finished_at: Mapped[Moment | None]


class Scoring(Base):
    """What an audit comes to under a policy other than the one it was submitted with."""

    __tablename__ = "scorings"
    __table_args__ = (
        CheckConstraint("cardinality(claim_values) = cardinality(verdicts)", name="claims"),
        CheckConstraint("response_score BETWEEN 0 AND 1", name="score_range"),
        CheckConstraint("(response_score IS NULL) = (label IS NULL)", name="label_with_score"),
        CheckConstraint(
            "(response_score IS NULL) = (cardinality(claim_values) = 0)", name="score_with_claims"
        ),
        CheckConstraint(
            "verdicts <@ ARRAY['supported', 'contradicted', 'unsupported']", name="verdicts"
        ),
        Index("ix_scorings_policy_id_audit_id", "policy_id", "audit_id"),
    )

    audit_id: Mapped[int] = mapped_column(
        ForeignKey(Audit.id, ondelete="CASCADE"), primary_key=True
    )
    policy_id: Mapped[int] = mapped_column(ForeignKey(PolicyVersion.id), primary_key=True)
    response_score: Mapped[float | None] = mapped_column(DOUBLE_PRECISION)
    label: Mapped[Label | None] = mapped_column(one_of(Label, "label"))
    deciding_claim: Mapped[int | None] = mapped_column(Integer)
    claim_values: Mapped[list[float]] = mapped_column(ARRAY(DOUBLE_PRECISION))
    verdicts: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[CreatedAt]


class Review(Base):
    """What one reviewer thinks of one claim; the latest counts, and all of them stay.

    It refers to no row of the audit, whose owner it keeps, and quotes the claim: retention may
    delete the audit.
    """

    __tablename__ = "reviews"
    __table_args__ = (
        CheckConstraint("length(reviewer) BETWEEN 1 AND 200", name="reviewer_length"),
        CheckConstraint("length(note) <= 10000", name="note_length"),
        Index("ix_reviews_claim_id_reviewer", "claim_id", "reviewer"),
    )

    id: Mapped[Id]
    claim_id: Mapped[int] = mapped_column(BigInteger)
    audit_id: Mapped[int] = mapped_column(BigInteger, index=True)
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id))  # whose the audit is
    claim_text: Mapped[str] = mapped_column(Text)
    verdict: Mapped[Verdict] = mapped_column(one_of(Verdict, "verdict"))  # as it stood
    reviewer: Mapped[str] = mapped_column(Text)
    reviewer_verdict: Mapped[Verdict] = mapped_column(one_of(Verdict, "reviewer_verdict"))
    note: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[CreatedAt]
