"""The tables. Constraints say what is impossible; docs/sql.md says what analysts read instead."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
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
    LargeBinary,
    SmallInteger,
    Text,
    UniqueConstraint,
    desc,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, DOUBLE_PRECISION, JSONB, REAL
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment, one_of
from db.key_models import ApiKey
from halldetect.claims.model import ClaimOrigin, ExtractionMode
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome, Status

# Of audits that have not ended, in words for an index and for those who are to be served by it.
WAITING = "status IN ('queued', 'extracted')"


class ModelKind(StrEnum):
    """What a model does."""

    EXTRACTOR = "extractor"
    NLI = "nli"


class WorkerState(StrEnum):
    """What a worker says of itself."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"  # its models cannot be loaded: it lives, and takes no work
    STOPPING = "stopping"


class Document(Base):
    """A source, stored once however often it is submitted."""

    __tablename__ = "documents"
    __table_args__ = (
        CheckConstraint("octet_length(sha256) = 32", name="sha256_length"),
        CheckConstraint("characters > 0", name="not_empty"),
    )

    id: Mapped[Id]
    sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    text: Mapped[str] = mapped_column(Text)
    characters: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[CreatedAt]


class PolicyVersion(Base):
    """One immutable version of a named policy."""

    __tablename__ = "policies"
    __table_args__ = (
        UniqueConstraint("name", "version"),
        CheckConstraint("version ~ '^[0-9a-f]{16}$'", name="version_form"),
    )

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    rules: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]


class Model(Base):
    """What computed: one row for each distinct provenance."""

    __tablename__ = "models"
    __table_args__ = (CheckConstraint("octet_length(sha256) = 32", name="sha256_length"),)

    id: Mapped[Id]
    sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)  # of kind and provenance
    kind: Mapped[ModelKind] = mapped_column(one_of(ModelKind, "kind"))
    name: Mapped[str] = mapped_column(Text)
    backend: Mapped[str] = mapped_column(Text)
    revision: Mapped[str] = mapped_column(Text)
    dtype: Mapped[str] = mapped_column(Text)
    device: Mapped[str] = mapped_column(Text)
    provenance: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]


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


class Extraction(Base):
    """What the extractor did for one audit, beside its claims."""

    __tablename__ = "extractions"
    __table_args__ = (
        CheckConstraint(
            "jsonb_typeof(rejected) = 'array' AND jsonb_typeof(unaudited) = 'array'"
            " AND jsonb_typeof(generations) = 'array'",
            name="lists",
        ),
    )

    audit_id: Mapped[int] = mapped_column(
        ForeignKey(Audit.id, ondelete="CASCADE"), primary_key=True
    )
    model_id: Mapped[int] = mapped_column(ForeignKey(Model.id))
    mode: Mapped[ExtractionMode] = mapped_column(one_of(ExtractionMode, "mode"))
    claims: Mapped[int] = mapped_column(Integer)
    rejected: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    unaudited: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    generations: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)


class SpanTable(Base):
    """The spans of one document for one splitter, tokenizer and limit, and the chunks they form.

    Chunk ids (m, index) follow from `chunk_granularity`: chunks stand by granularity and index.
    Chunk k consists of the spans ``chunk_spans[chunk_offsets[k] : chunk_offsets[k + 1]]``, all
    counted from 0.
    """

    __tablename__ = "span_tables"
    __table_args__ = (
        UniqueConstraint("document_id", "splitter", "tokenizer", "token_limit"),
        CheckConstraint(
            "cardinality(starts) = cardinality(ends) AND cardinality(starts) > 0", name="spans"
        ),
        CheckConstraint(
            "cardinality(chunk_offsets) = cardinality(chunk_granularity) + 1", name="chunks"
        ),
        CheckConstraint(
            "chunk_offsets[cardinality(chunk_offsets)] = cardinality(chunk_spans)",
            name="chunk_spans",
        ),
    )

    id: Mapped[Id]
    document_id: Mapped[int] = mapped_column(ForeignKey(Document.id, ondelete="CASCADE"))
    splitter: Mapped[str] = mapped_column(Text)
    tokenizer: Mapped[str] = mapped_column(Text)
    token_limit: Mapped[int] = mapped_column(Integer)
    starts: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    ends: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    chunk_granularity: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    chunk_offsets: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    chunk_spans: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    sentences: Mapped[int] = mapped_column(Integer)
    unreadable_sentences: Mapped[int] = mapped_column(Integer)
    tokens: Mapped[int] = mapped_column(Integer)
    unknown_tokens: Mapped[int] = mapped_column(Integer)
    windowed_chunks: Mapped[int] = mapped_column(Integer)


class Verification(Base):
    """What the encoder did for one audit, beside the probabilities."""

    __tablename__ = "verifications"

    audit_id: Mapped[int] = mapped_column(
        ForeignKey(Audit.id, ondelete="CASCADE"), primary_key=True
    )
    model_id: Mapped[int] = mapped_column(ForeignKey(Model.id))
    span_table_id: Mapped[int] = mapped_column(ForeignKey(SpanTable.id), index=True)
    preselected_spans: Mapped[int | None] = mapped_column(Integer)
    warnings: Mapped[list[str]] = mapped_column(ARRAY(Text))


class Claim(Base):
    """One atomic assertion of a response and, once verified, the verdict on it."""

    __tablename__ = "claims"
    __table_args__ = (
        UniqueConstraint("audit_id", "position"),
        CheckConstraint("position >= 0 AND part >= 0", name="place"),
        CheckConstraint("0 <= span_start AND span_start <= span_end", name="span"),
        CheckConstraint(
            "(antecedent_start IS NULL) = (antecedent_end IS NULL)", name="antecedent_whole"
        ),
        CheckConstraint(
            "num_nulls(verified_text, verdict, score, entailment, entailment_span, contradiction,"
            " contradiction_span, checked_spans) IN (0, 8)",
            name="verified_whole",
        ),
        CheckConstraint(
            "entailment BETWEEN 0 AND 1 AND contradiction BETWEEN 0 AND 1", name="probabilities"
        ),
        CheckConstraint("score BETWEEN -1 AND 1", name="score_range"),
    )

    id: Mapped[Id]
    audit_id: Mapped[int] = mapped_column(ForeignKey(Audit.id, ondelete="CASCADE"))
    position: Mapped[int] = mapped_column(Integer)
    text: Mapped[str] = mapped_column(Text)
    span_start: Mapped[int] = mapped_column(Integer)
    span_end: Mapped[int] = mapped_column(Integer)
    origin: Mapped[ClaimOrigin] = mapped_column(one_of(ClaimOrigin, "origin"))
    part: Mapped[int] = mapped_column(Integer)
    has_name: Mapped[bool] = mapped_column(Boolean)
    has_number: Mapped[bool] = mapped_column(Boolean)
    has_date: Mapped[bool] = mapped_column(Boolean)
    antecedent_start: Mapped[int | None] = mapped_column(Integer)
    antecedent_end: Mapped[int | None] = mapped_column(Integer)

    verified_text: Mapped[str | None] = mapped_column(Text)
    verdict: Mapped[Verdict | None] = mapped_column(one_of(Verdict, "verdict"))
    score: Mapped[float | None] = mapped_column(DOUBLE_PRECISION)
    entailment: Mapped[float | None] = mapped_column(REAL)
    entailment_span: Mapped[int | None] = mapped_column(Integer)
    contradiction: Mapped[float | None] = mapped_column(REAL)
    contradiction_span: Mapped[int | None] = mapped_column(Integer)
    checked_spans: Mapped[int | None] = mapped_column(Integer)


class Probability(Base):
    """All probabilities of one claim, in the order of its document's spans.

    NULL where pre-selection skipped a span. Partitioned by the month in which the audit was
    submitted; nothing refers to it, so that retention can drop a month at once.
    """

    __tablename__ = "probabilities"
    __table_args__ = (
        CheckConstraint(
            "cardinality(entailment) = cardinality(neutral)"
            " AND cardinality(entailment) = cardinality(contradiction)",
            name="spans",
        ),
        CheckConstraint(
            "0 <= ALL(array_remove(entailment, NULL)) AND 1 >= ALL(array_remove(entailment, NULL))"
            " AND 0 <= ALL(array_remove(neutral, NULL)) AND 1 >= ALL(array_remove(neutral, NULL))"
            " AND 0 <= ALL(array_remove(contradiction, NULL))"
            " AND 1 >= ALL(array_remove(contradiction, NULL))",
            name="range",
        ),
        {"postgresql_partition_by": "RANGE (month)"},
    )

    month: Mapped[date] = mapped_column(Date, primary_key=True)
    audit_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    entailment: Mapped[list[float | None]] = mapped_column(ARRAY(REAL))
    neutral: Mapped[list[float | None]] = mapped_column(ARRAY(REAL))
    contradiction: Mapped[list[float | None]] = mapped_column(ARRAY(REAL))


class IdempotencyKey(Base):
    """The first answer to a request that the caller may repeat."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        CheckConstraint("octet_length(request_sha256) = 32", name="sha256_length"),
        # Two owners may take the same key; nobody's are one owner's.
        Index("uq_idempotency_keys_api_key_id_key", "api_key_id", "key", unique=True),
        Index(
            "uq_idempotency_keys_key",
            "key",
            unique=True,
            postgresql_where=text("api_key_id IS NULL"),
        ),
    )

    id: Mapped[Id]
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id))
    key: Mapped[str] = mapped_column(Text)
    request_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[int] = mapped_column(SmallInteger)
    headers: Mapped[dict[str, str]] = mapped_column(JSONB)
    body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[CreatedAt] = mapped_column(index=True)


class WorkerRow(Base):
    """A worker process, as it last reported."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    queues: Mapped[list[str]] = mapped_column(ARRAY(Text))
    pid: Mapped[int] = mapped_column(Integer)
    host: Mapped[str] = mapped_column(Text)
    state: Mapped[WorkerState] = mapped_column(one_of(WorkerState, "state"))
    error: Mapped[str | None] = mapped_column(Text)
    models: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    counters: Mapped[dict[str, float]] = mapped_column(JSONB, server_default=text("'{}'"))
    started_at: Mapped[CreatedAt]
    seen_at: Mapped[Moment] = mapped_column(server_default=func.now())
