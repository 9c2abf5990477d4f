"""Batches: how far they are, counted from their audits, and their cancellation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, update
from sqlalchemy.orm import Session

from db.leases import FREE
from db.models import Audit, Batch
from db.ownership import UNRESTRICTED, Caller
from db.running import RunningAudit, longest_running
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome, Status

_WAITING = (Status.QUEUED, Status.EXTRACTED)
# A few tenths of a second; a page of a thousand large batches would take minutes.
_MOST_COUNTED_A_PAGE = 200_000


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch and what its audits have come to.

    Parameters
    ----------
    id : int
        The batch.
    created_at, cancelled_at, finished_at : datetime
        When it was submitted, cancelled, and when the last of its audits ended.
    total : int
        Audits; always the sum of the five states.
    queued, extracted, completed, failed, cancelled : int
        Audits in each state.
    running : int
        Of those that wait, how many a worker holds.
    hallucinated, faithful, no_checkable_claims : int
        What the completed ones came to.
    supported, contradicted, unsupported : int
        Verdicts on their claims.
    longest_running : RunningAudit or None
        Of those that a worker is at, the one it has been at longest.
    """

    id: int
    created_at: datetime
    cancelled_at: datetime | None
    finished_at: datetime | None
    total: int
    queued: int
    extracted: int
    completed: int
    failed: int
    cancelled: int
    running: int
    hallucinated: int
    faithful: int
    no_checkable_claims: int
    supported: int
    contradicted: int
    unsupported: int
    longest_running: RunningAudit | None = None

    @property
    def waiting(self) -> int:
        """Audits that have not ended."""
        return self.queued + self.extracted

    @property
    def status(self) -> str:
        """``in_progress``, ``completed`` (whatever the audits came to) or ``cancelled``."""
        if self.waiting:
            return "in_progress"
        return "cancelled" if self.cancelled else "completed"

    def document(self) -> dict[str, Any]:
        """Return what is told of it outside: ids are texts there, and no audit's text is in it."""
        return {
            **asdict(self),
            "id": str(self.id),
            "waiting": self.waiting,
            "status": self.status,
            "longest_running": self.longest_running and self.longest_running.document(),
        }


def batch_state(
    session: Session, batch_id: int, *, caller: Caller = UNRESTRICTED
) -> BatchState | None:
    """Return a batch with its counts, or None when the caller has none of that id."""
    wanted = (Batch.id == batch_id, caller.sees(Batch.api_key_id))
    states = _states(session, _counted().where(*wanted))
    return states[0] if states else None


def list_batches(
    session: Session, *, before_id: int | None, limit: int, caller: Caller = UNRESTRICTED
) -> tuple[list[BatchState], bool]:
    """Return the caller's newest batches with their counts, from below `before_id` on.

    A page of large batches ends before `limit`: all of their audits have to be read for the counts.

    Returns
    -------
    batches : list of BatchState
        At least one, if there is any.
    has_more : bool
        Whether there are older ones.
    """
    newest = select(Batch.id, Batch.total).where(caller.sees(Batch.api_key_id))
    newest = newest.order_by(Batch.id.desc()).limit(limit + 1)
    if before_id is not None:
        newest = newest.where(Batch.id < before_id)
    rows = session.execute(newest).all()
    audits = list(accumulate(row.total for row in rows[:limit]))
    length = max(1, sum(sofar <= _MOST_COUNTED_A_PAGE for sofar in audits))
    page = [row.id for row in rows[:limit][:length]]
    statement = _counted().where(Batch.id.in_(page)).order_by(Batch.id.desc())
    return _states(session, statement), len(rows) > len(page)


def cancel_batch(
    session: Session, batch_id: int, *, caller: Caller = UNRESTRICTED
) -> BatchState | None:
    """Cancel what has not ended; what has, stays. None when the caller has no such batch.

    An audit that a worker holds is cancelled too: the worker's write finds the lease gone.
    """
    seen = select(Batch.id).where(Batch.id == batch_id, caller.sees(Batch.api_key_id))
    if session.scalar(seen) is None:
        return None
    now = func.clock_timestamp()
    session.execute(
        update(Batch)
        .where(Batch.id == batch_id)
        .values(cancelled_at=func.coalesce(Batch.cancelled_at, now))
        .execution_options(synchronize_session=False)
    )
    session.execute(
        update(Audit)
        .where(Audit.batch_id == batch_id, Audit.status.in_(_WAITING))
        .values(status=Status.CANCELLED, finished_at=now, **FREE)
        .execution_options(synchronize_session=False)
    )
    return batch_state(session, batch_id)


def _counted() -> Select[*tuple[Any, ...]]:
    def count(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.count().filter(condition)

    def total(column: Any) -> ColumnElement[int]:
        return func.coalesce(func.sum(column), 0)

    return (
        select(
            Batch.id,
            Batch.created_at,
            Batch.cancelled_at,
            func.max(Audit.finished_at).label("finished_at"),
            Batch.total,
            *(count(Audit.status == status).label(status.value) for status in Status),
            count(Audit.lease_owner.isnot(None)).label("running"),
            *(count(Audit.label == label).label(label.value) for label in Label),
            count(Audit.outcome == Outcome.NO_CHECKABLE_CLAIMS).label("no_checkable_claims"),
            total(Audit.supported).label("supported"),
            total(Audit.contradicted).label("contradicted"),
            total(Audit.unsupported).label("unsupported"),
        )
        .join(Audit, Audit.batch_id == Batch.id)
        .group_by(Batch.id)
    )


def _states(session: Session, statement: Select[*tuple[Any, ...]]) -> list[BatchState]:
    states = [BatchState(**row) for row in session.execute(statement).mappings()]
    running = longest_running(session, [state.id for state in states if state.running])
    return [
        replace(state, finished_at=None, longest_running=running.get(state.id))
        if state.waiting
        else state
        for state in states
    ]
