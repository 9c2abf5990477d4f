"""What the models found in an audit: claims, spans and probabilities."""

from __future__ import annotations

from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Date,
    ForeignKey,
    Integer,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import ARRAY, DOUBLE_PRECISION, JSONB, REAL
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, Id, one_of
from db.models.audits import Audit
from db.models.inputs import Document, Model
from halldetect.claims.model import ClaimOrigin, ExtractionMode
from halldetect.scoring.verdict import Verdict


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
