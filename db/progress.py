"""Writing what a stage found: one transaction an audit, and only by the holder of its lease."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import CursorResult, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.driver import driver_connection
from db.error_texts import storable_error
from db.leases import FREE, Lease, LeaseLost, held
from db.models import (
    Audit,
    Claim,
    Extraction,
    Model,
    ModelKind,
    SpanTable,
    Verification,
)
from db.partitions import ensure_partitions
from halldetect.claims.model import Decomposition, ExtractionMode
from halldetect.results import generation_trail, rejected_trail, unaudited_trail
from halldetect.scoring.matrix import ProbabilityMatrix
from halldetect.scoring.score import AuditScore
from halldetect.scoring.verdict import Verdict
from halldetect.sources import PreparedSource
from halldetect.trail import Outcome, Status
from halldetect.verification import Hypotheses
from halldetect.wording import counted


@dataclass(frozen=True, slots=True)
class SpanKey:
    """What the spans of a document depend on, beside the document.

    Parameters
    ----------
    splitter : str
        Which rules found the sentences.
    tokenizer : str
        Digest of the encoder's tokenizer.
    token_limit : int
        Most tokens of a pair.
    """

    splitter: str
    tokenizer: str
    token_limit: int


def model_id(session: Session, kind: ModelKind, provenance: Mapping[str, Any]) -> int:
    """Return the row of a model, stored when first seen.

    Parameters
    ----------
    kind : ModelKind
        What it does.
    provenance : mapping
        `ModelProvenance.to_json`, and whatever else the trail should say of it.
    """
    canonical = json.dumps([kind.value, provenance], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).digest()
    named = {
        field: provenance[field] for field in ("name", "backend", "revision", "dtype", "device")
    }
    session.execute(
        insert(Model)
        .values(sha256=digest, kind=kind, provenance=dict(provenance), **named)
        .on_conflict_do_nothing()
    )
    return session.scalars(select(Model.id).where(Model.sha256 == digest)).one()


def save_extraction(
    session: Session,
    lease: Lease,
    decomposition: Decomposition,
    *,
    response: str,
    mode: ExtractionMode,
    model_id: int,
) -> None:
    """Store the claims of an audit and pass it on to verification.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's; nothing is written.
    """
    _write_fenced(
        session,
        lease,
        status=Status.EXTRACTED,
        extracted_at=func.clock_timestamp(),
        worker_lost=False,
        **FREE,
    )
    session.execute(
        insert(Extraction).values(
            audit_id=lease.audit_id,
            model_id=model_id,
            mode=mode,
            claims=len(decomposition.claims),
            rejected=[
                {
                    **line.model_dump(mode="json"),
                    "text": _storable(line.text),
                    "detail": _storable(line.detail),
                }
                for line in rejected_trail(decomposition)
            ],
            unaudited=[
                left.model_dump(mode="json") for left in unaudited_trail(decomposition, response)
            ],
            generations=[call.model_dump(mode="json") for call in generation_trail(decomposition)],
        )
    )
    if decomposition.claims:
        session.execute(
            insert(Claim),
            [
                {
                    "audit_id": lease.audit_id,
                    "position": position,
                    "text": claim.text,
                    "span_start": claim.span.start,
                    "span_end": claim.span.end,
                    "origin": claim.origin,
                    "part": claim.part,
                    "has_name": claim.has_name,
                    "has_number": claim.has_number,
                    "has_date": claim.has_date,
                    "antecedent_start": claim.antecedent.start if claim.antecedent else None,
                    "antecedent_end": claim.antecedent.end if claim.antecedent else None,
                }
                for position, claim in enumerate(decomposition.claims)
            ],
        )


def _storable(generated: str) -> str:
    """Make a model's own words fit for Postgres, which refuses NUL in text."""
    return generated.replace("\0", "\ufffd")


def save_verification(
    session: Session,
    lease: Lease,
    *,
    document_id: int,
    source: PreparedSource,
    span_key: SpanKey,
    hypotheses: Hypotheses,
    matrix: ProbabilityMatrix,
    score: AuditScore,
    warnings: Sequence[str],
    model_id: int,
    preselected_spans: int | None,
) -> None:
    """Store all probabilities of an audit, its verdicts and its score, and end it.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's; nothing is written.
    """
    counts = score.verdict_counts
    month = _write_fenced(
        session,
        lease,
        status=Status.COMPLETED,
        finished_at=func.clock_timestamp(),
        worker_lost=False,
        outcome=Outcome.NO_CHECKABLE_CLAIMS if score.response_score is None else Outcome.SCORED,
        fedscore=score.response_score,
        label=score.label,
        deciding_claim=score.deciding_claim,
        supported=counts[Verdict.SUPPORTED],
        contradicted=counts[Verdict.CONTRADICTED],
        unsupported=counts[Verdict.UNSUPPORTED],
        **FREE,
    )
    session.execute(
        insert(Verification).values(
            audit_id=lease.audit_id,
            model_id=model_id,
            span_table_id=_span_table_id(session, document_id, source, span_key),
            preselected_spans=preselected_spans,
            warnings=list(warnings),
        )
    )
    if len(hypotheses.texts):
        _save_verdicts(session, lease.audit_id, hypotheses, matrix, score)
        _copy_probabilities(session, month, lease.audit_id, matrix)


def _span_table_id(session: Session, document_id: int, source: PreparedSource, key: SpanKey) -> int:
    where = {
        "document_id": document_id,
        "splitter": key.splitter,
        "tokenizer": key.tokenizer,
        "token_limit": key.token_limit,
    }
    # Locked, so that retention leaves it alone until the audit refers to it.
    found = select(SpanTable.id).filter_by(**where).with_for_update(key_share=True)
    stored = session.scalar(found)
    if stored is not None:
        return stored
    library = source.library
    session.execute(
        insert(SpanTable)
        .values(
            **where,
            starts=[span.start for span in library.spans],
            ends=[span.end for span in library.spans],
            chunk_granularity=library.chunk_granularity.tolist(),
            chunk_offsets=library.chunk_span_offsets.tolist(),
            chunk_spans=library.chunk_span_indices.tolist(),
            sentences=source.sentences,
            unreadable_sentences=source.unreadable_sentences,
            tokens=len(library.tokens.ids),
            unknown_tokens=library.tokens.unknown,
            windowed_chunks=library.windowed_chunks,
        )
        .on_conflict_do_nothing()
    )
    return session.scalars(found).one()


_SAVE_VERDICTS = text(
    """
    UPDATE halldetect.claims AS c SET
        verified_text = v.verified_text, verdict = v.verdict, score = v.score,
        entailment = v.entailment, entailment_span = v.entailment_span,
        contradiction = v.contradiction, contradiction_span = v.contradiction_span,
        checked_spans = v.checked_spans
    FROM unnest(
        CAST(:texts AS text[]), CAST(:verdicts AS text[]), CAST(:scores AS float8[]),
        CAST(:entailment AS float4[]), CAST(:entailment_spans AS int[]),
        CAST(:contradiction AS float4[]), CAST(:contradiction_spans AS int[]),
        CAST(:checked AS int[])
    ) WITH ORDINALITY AS v (verified_text, verdict, score, entailment, entailment_span,
        contradiction, contradiction_span, checked_spans, number)
    WHERE c.audit_id = :audit_id AND c.position = v.number - 1
    """
)


def _save_verdicts(
    session: Session,
    audit_id: int,
    hypotheses: Hypotheses,
    matrix: ProbabilityMatrix,
    score: AuditScore,
) -> None:
    updated = session.execute(
        _SAVE_VERDICTS,
        {
            "audit_id": audit_id,
            "texts": list(hypotheses.texts),
            "verdicts": [verdict.value for verdict in score.verdicts],
            "scores": score.values.tolist(),
            "entailment": score.best_entailment.tolist(),
            "entailment_spans": score.best_entailment_spans.tolist(),
            "contradiction": score.best_contradiction.tolist(),
            "contradiction_spans": score.best_contradiction_spans.tolist(),
            "checked": np.isfinite(matrix.entailment).sum(axis=1).tolist(),
        },
    )
    if not isinstance(updated, CursorResult) or updated.rowcount != matrix.n_claims:
        raise RuntimeError(f"audit {audit_id}: its claims are not those that were verified")


def _copy_probabilities(
    session: Session, month: date, audit_id: int, matrix: ProbabilityMatrix
) -> None:
    ensure_partitions(session, month, 1)
    rows = zip(
        _with_nulls(matrix.entailment),
        _with_nulls(matrix.neutral),
        _with_nulls(matrix.contradiction),
        strict=True,
    )
    with (
        driver_connection(session)
        .cursor()
        .copy(
            "COPY halldetect.probabilities (month, audit_id, position, entailment, neutral,"
            " contradiction) FROM STDIN (FORMAT BINARY)"
        ) as copy
    ):
        copy.set_types(["date", "int8", "int4", "float4[]", "float4[]", "float4[]"])
        for position, row in enumerate(rows):
            copy.write_row((month, audit_id, position, *row))


def _with_nulls(values: NDArray[np.float32]) -> list[list[float | None]]:
    if np.isfinite(values).all():
        return values.tolist()  # type: ignore[no-any-return]
    return [[None if isnan(cell) else cell for cell in row] for row in values.tolist()]


def fail_audit(session: Session, lease: Lease, error: str) -> None:
    """End an audit that cannot be made, with the reason.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's.
    """
    _write_fenced(
        session,
        lease,
        status=Status.FAILED,
        error=storable_error(error),
        finished_at=func.clock_timestamp(),
        faults=Audit.faults + 1,
        **FREE,
    )


def charge_fault(session: Session, lease: Lease, error: str, max_attempts: int) -> bool:
    """Count an error that another attempt may not meet; return whether it was the last one.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's.
    """
    faults = session.scalar(select(Audit.faults).where(held(lease)).with_for_update())
    if faults is None:
        raise _lost(lease)
    if faults + 1 >= max_attempts:
        fail_audit(session, lease, f"failed {counted(max_attempts, 'time')}, lastly: {error}")
        return True
    _write_fenced(session, lease, faults=Audit.faults + 1, **FREE)
    return False


def _write_fenced(session: Session, lease: Lease, **values: Any) -> date:
    """Update an audit that is still held, and return the month it belongs to."""
    month = session.scalar(
        update(Audit)
        .where(held(lease))
        .values(**values)
        .returning(Audit.month)
        .execution_options(synchronize_session=False)
    )
    if month is None:
        raise _lost(lease)
    return month


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"audit {lease.audit_id} is no longer held by {lease.owner} under token "
        f"{lease.fencing_token}: it was taken over or cancelled"
    )
