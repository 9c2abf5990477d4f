"""Writing what the encoder found, and the verdicts on it: one transaction an audit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from math import isnan

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import CursorResult, func, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.driver import driver_connection
from db.leases import FREE, Lease
from db.models import Verification
from db.partitions import ensure_partitions
from db.progress import write_fenced
from db.spans import SpanKey, span_table_id
from halldetect.scoring.matrix import ProbabilityMatrix
from halldetect.scoring.score import AuditScore
from halldetect.scoring.verdict import Verdict
from halldetect.sources import PreparedSource
from halldetect.trail import Outcome, Status
from halldetect.verification import Hypotheses


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
    month = write_fenced(
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
            span_table_id=span_table_id(session, document_id, source, span_key),
            preselected_spans=preselected_spans,
            warnings=list(warnings),
        )
    )
    if len(hypotheses.texts):
        _save_verdicts(session, lease.audit_id, hypotheses, matrix, score)
        _copy_probabilities(session, month, lease.audit_id, matrix)


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
