"""Reading audits: one, a page of them, or all of a batch as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from db.audit_filters import filtered
from db.models import Audit, Document, PolicyVersion
from db.ownership import UNRESTRICTED, Caller
from db.trails import StoredAudit, load_trails
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome, Status

_STREAMED_AUDITS = 100
_STREAMED_MATRICES = 10
# Evidence is cut out of the sources: few long ones are read at a time.
_STREAMED_CHARACTERS = 4_000_000


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which audits to list; None does not filter.

    Parameters
    ----------
    batch_id : int, optional
        Of this batch.
    status, label, outcome : optional
        As they stand.
    policy : str, optional
        Name of the policy they were scored with, in any version.
    custom_id : str, optional
        Exactly this one.
    submitted_from, submitted_before : datetime, optional
        Half-open range of the time of submission.
    """

    batch_id: int | None = None
    status: Status | None = None
    label: Label | None = None
    outcome: Outcome | None = None
    policy: str | None = None
    custom_id: str | None = None
    submitted_from: datetime | None = None
    submitted_before: datetime | None = None


class AuditSummary(BaseModel):
    """An audit in a list: how it stands, without claims.

    Parameters
    ----------
    attempts : int
        How often a worker began to work on it.
    faults : int
        Attempts that ended in a lost worker or in the audit's own error.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    custom_id: str | None
    batch_id: str | None
    line: int | None
    status: Status
    outcome: Outcome | None
    fedscore: float | None
    label: Label | None
    policy: str
    supported: int | None
    contradicted: int | None
    unsupported: int | None
    error: str | None
    attempts: int
    faults: int
    submitted_at: datetime
    finished_at: datetime | None


def get_audit(
    session: Session,
    audit_id: int,
    *,
    with_matrix: bool = False,
    caller: Caller = UNRESTRICTED,
) -> StoredAudit | None:
    """Return the trail of an audit, or None when the caller has none of that id."""
    seen = select(Audit.id).where(Audit.id == audit_id, caller.sees(Audit.api_key_id))
    if session.scalar(seen) is None:
        return None
    trails = load_trails(session, [audit_id], with_matrix=with_matrix)
    return trails[0] if trails else None


def list_audits(
    session: Session,
    filters: AuditFilter,
    *,
    before_id: int | None,
    limit: int,
    caller: Caller = UNRESTRICTED,
) -> list[AuditSummary]:
    """Return the caller's newest audits that pass the filter, from below `before_id` on.

    Ids are unique and grow, so that pages neither skip nor repeat audits that were submitted in
    one moment.
    """
    # Ids of a batch grow with its lines, which have an index; by id, all that is newer than an old
    # batch might be read to find its audits.
    newest_first = Audit.id.desc() if filters.batch_id is None else Audit.line.desc()
    # Found by ids alone, as an index holds all filters: rows are read of what is listed.
    found = (
        select(Audit.id)
        .where(caller.sees(Audit.api_key_id), *filtered(filters))
        .order_by(newest_first)
        .limit(limit)
    )
    if before_id is not None:
        found = found.where(Audit.id < before_id)
    if filters.status is not None:
        found = found.where(Audit.status == filters.status)
    statement = (
        select(Audit, PolicyVersion.name)
        .join(PolicyVersion, PolicyVersion.id == Audit.policy_id)
        .where(Audit.id.in_(found))
        .order_by(Audit.id.desc())
    )
    return [_summary(row) for row in session.execute(statement)]


def _summary(row: Row[Audit, str]) -> AuditSummary:
    audit, policy = row
    return AuditSummary(
        id=str(audit.id),
        custom_id=audit.custom_id,
        batch_id=None if audit.batch_id is None else str(audit.batch_id),
        line=audit.line,
        status=audit.status,
        outcome=audit.outcome,
        fedscore=audit.fedscore,
        label=audit.label,
        policy=policy,
        supported=audit.supported,
        contradicted=audit.contradicted,
        unsupported=audit.unsupported,
        error=audit.error,
        attempts=audit.attempts,
        faults=audit.faults,
        submitted_at=audit.submitted_at,
        finished_at=audit.finished_at,
    )


def stream_results(
    session: Session, batch_id: int, *, with_matrix: bool = False
) -> Iterator[StoredAudit]:
    """Yield the trails of a batch in the order of submission, as they stand by now.

    Memory is bounded by a page, however long the batch.
    """
    after = 0
    most = _STREAMED_MATRICES if with_matrix else _STREAMED_AUDITS
    while page := _page(session, batch_id, after, most):
        yield from load_trails(session, [row.id for row in page], with_matrix=with_matrix)
        after = page[-1].line
        session.expunge_all()


def _page(session: Session, batch_id: int, after: int, most: int) -> list[Row[int, int, int]]:
    rows = session.execute(
        select(Audit.id, func.coalesce(Audit.line, 0).label("line"), Document.characters)
        .join(Document, Document.id == Audit.document_id)
        .where(Audit.batch_id == batch_id, Audit.line > after)
        .order_by(Audit.line)
        .limit(most)
    ).all()
    page: list[Row[int, int, int]] = []
    characters = 0
    for row in rows:
        characters += row.characters
        if page and characters > _STREAMED_CHARACTERS:
            break
        page.append(row)
    return page
