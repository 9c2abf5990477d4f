"""From rows back to the trail of an audit, as the method itself writes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field, ValidationError
from sqlalchemy.orm import Session

from db.models import (
    Claim,
    Probability,
    SpanTable,
)
from db.policies import stored_policy
from db.spans import StoredSpans
from db.trail_rows import AuditRows, audit_rows, claims_of, probabilities_of
from halldetect.errors import HallDetectError
from halldetect.spans import Span
from halldetect.trail import (
    AuditResult,
    ClaimFlags,
    ClaimTrail,
    Counts,
    DocumentTrail,
    Evidence,
    Matrix,
    PolicyTrail,
    Status,
    TextSpan,
)


class TrailDamaged(HallDetectError):
    """What is stored of an audit contradicts itself; the message says where."""


class StoredClaim(ClaimTrail):
    """A claim of an audit of the service; reviews name it by its id."""

    id: str


class StoredAudit(AuditResult):
    """The trail of an audit of the service: what the method found, and how it went.

    Parameters
    ----------
    response, context : str, str or None
        What was audited, and what had been asked.
    batch_id : str or None
        The batch it belongs to.
    line : int or None
        Physical line of the upload it came in, from 1.
    priority, attempts : int
        Its place in the line; how often a worker took it, over both stages.
    submitted_at, extracted_at, finished_at : datetime or None
        UTC.
    """

    # Narrower than the method's own; a trail is frozen, so that nothing else can get in.
    claims: list[StoredClaim] = Field(default_factory=list)  # type: ignore[assignment]
    response: str
    context: str | None
    batch_id: str | None
    line: int | None
    priority: int
    attempts: int
    submitted_at: datetime
    extracted_at: datetime | None
    finished_at: datetime | None


def load_trails(
    session: Session, audit_ids: Sequence[int], *, with_matrix: bool
) -> list[StoredAudit]:
    """Read the trails of audits, in the order of the ids; ids that are no audit's are left out.

    Parameters
    ----------
    with_matrix : bool
        Whether to read the probabilities, which are most of a trail.

    Raises
    ------
    TrailDamaged
        When rows of an audit are missing, or hold what the service never writes.
    """
    rows = audit_rows(session, audit_ids)
    done = [i for i, found in rows.items() if found.audit.status is Status.COMPLETED]
    claims = claims_of(session, done)
    probabilities = probabilities_of(session, [rows[i].audit for i in done]) if with_matrix else {}
    spans = {
        found.span_table.id: _spans(found.audit.id, found.span_table)
        for found in rows.values()
        if found.span_table is not None
    }
    trails = []
    for audit_id in audit_ids:
        found = rows.get(audit_id)
        if found is None:
            continue
        fields = _fields(found)
        if found.span_table is not None and found.audit.status is Status.COMPLETED:
            stored = spans[found.span_table.id]
            fields |= _findings(found, claims[audit_id], stored)
            if with_matrix:
                fields["matrix"] = _matrix(stored, probabilities.get(audit_id, []))
        trails.append(_audit(audit_id, fields))
    return trails


def _audit(audit_id: int, fields: dict[str, Any]) -> StoredAudit:
    try:
        return StoredAudit(**fields)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors())
        raise TrailDamaged(f"audit {audit_id}: {places} cannot be what is stored") from None


def _spans(audit_id: int, table: SpanTable) -> StoredSpans:
    try:
        return StoredSpans.of(table)
    except (ValueError, TypeError) as error:
        raise TrailDamaged(
            f"audit {audit_id}: the spans of its source cannot be read ({error})"
        ) from None


def _fields(found: AuditRows) -> dict[str, Any]:
    audit = found.audit
    models: dict[str, dict[str, Any]] = {}
    if found.extractor is not None:
        models["extractor"] = found.extractor.provenance
    if found.nli is not None:
        models["nli"] = found.nli.provenance
    fields: dict[str, Any] = {
        "id": str(audit.id),
        "custom_id": audit.custom_id,
        "status": audit.status,
        "outcome": audit.outcome,
        "fedscore": audit.fedscore,
        "label": audit.label,
        "deciding_claim": audit.deciding_claim,
        "error": audit.error,
        "policy": PolicyTrail.of(stored_policy(found.policy).policy),
        "extraction_mode": found.extraction.mode.value if found.extraction else None,
        "models": models,
        "metadata": audit.caller_metadata,
        "response": audit.response,
        "context": audit.context,
        "batch_id": None if audit.batch_id is None else str(audit.batch_id),
        "line": audit.line,
        "priority": audit.priority,
        "attempts": audit.attempts,
        "submitted_at": audit.submitted_at,
        "extracted_at": audit.extracted_at,
        "finished_at": audit.finished_at,
    }
    if found.extraction is not None:
        fields["rejected"] = found.extraction.rejected
        fields["unaudited"] = found.extraction.unaudited
        fields["generations"] = found.extraction.generations
    return fields


def _findings(found: AuditRows, claims: Sequence[Claim], stored: StoredSpans) -> dict[str, Any]:
    audit, verification, table = found.audit, found.verification, found.span_table
    if verification is None or table is None or found.extraction is None:
        raise TrailDamaged(f"audit {audit.id} is completed, and its extraction is not stored")
    names = stored.chunk_names()
    return {
        "counts": Counts(
            supported=audit.supported or 0,
            contradicted=audit.contradicted or 0,
            unsupported=audit.unsupported or 0,
            rejected=len(found.extraction.rejected),
            unaudited=len(found.extraction.unaudited),
        ),
        "claims": [_claim(claim, found.document.text, stored.spans, names) for claim in claims],
        "document": DocumentTrail(
            sha256=found.document.sha256.hex(),
            characters=found.document.characters,
            sentences=table.sentences,
            unreadable_sentences=table.unreadable_sentences,
            tokens=table.tokens,
            unknown_tokens=table.unknown_tokens,
            windowed_chunks=table.windowed_chunks,
        ),
        "warnings": verification.warnings,
    }


def _claim(row: Claim, source: str, spans: Sequence[Span], names: Sequence[str]) -> StoredClaim:
    def evidence(field: str, probability: Any, number: Any) -> Evidence:
        if number is None or not 0 <= number < len(spans):
            raise TrailDamaged(
                f"audit {row.audit_id}, claim {row.position}: {field}_span is {number}, and the "
                f"source has {len(spans)} spans"
            )
        span = spans[number]
        return Evidence(
            probability=probability,
            chunk=names[number],
            span=TextSpan(start=span.start, end=span.end),
            text=span.of(source),
        )

    fields: dict[str, Any] = {
        "id": str(row.id),
        "text": row.text,
        "verified_text": row.verified_text,
        "span": TextSpan(start=row.span_start, end=row.span_end),
        "origin": row.origin,
        "part": row.part,
        "flags": ClaimFlags(name=row.has_name, number=row.has_number, date=row.has_date),
        "verdict": row.verdict,
        "score": row.score,
        "entailment": evidence("entailment", row.entailment, row.entailment_span),
        "contradiction": evidence("contradiction", row.contradiction, row.contradiction_span),
        "checked_spans": row.checked_spans,
    }
    return StoredClaim(**fields)


def _matrix(stored: StoredSpans, rows: Sequence[Probability]) -> Matrix:
    return Matrix(
        spans=[TextSpan(start=span.start, end=span.end) for span in stored.spans],
        chunks=stored.chunks,
        entailment=[row.entailment for row in rows],
        neutral=[row.neutral for row in rows],
        contradiction=[row.contradiction for row in rows],
    )
