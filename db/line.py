"""The line of audits that wait for a stage, and who goes first."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import Session

from db.models import Audit
from halldetect.trail import Status


class Stage(StrEnum):
    """What a worker does to an audit."""

    EXTRACTION = "extraction"
    VERIFICATION = "verification"

    @property
    def awaited_in(self) -> Status:
        """The status of audits that wait for this stage."""
        return Status.QUEUED if self is Stage.EXTRACTION else Status.EXTRACTED


def is_free() -> ColumnElement[bool]:
    """Return the condition that nobody holds an audit."""
    return Audit.lease_owner.is_(None)


def in_line_for(stage: Stage) -> ColumnElement[bool]:
    """Return the condition that an audit waits for a stage, in anybody's hands or nobody's."""
    # The literal, not a parameter: only so does the planner see that the partial index fits.
    return text(f"halldetect.audits.status = '{stage.awaited_in.value}'")  # type: ignore[return-value]


def order() -> tuple[Any, ...]:
    """Return who goes first: priority, then single audits before batches, then first come."""
    return (Audit.priority.desc(), Audit.batch_id.isnot(None), Audit.id)


def waiting(session: Session, stage: Stage) -> int:
    """Return how many audits wait for a stage and are nobody's."""
    statement = select(func.count()).select_from(Audit).where(in_line_for(stage), is_free())
    return session.scalars(statement).one()


def head_of_line(session: Session, stage: Stage) -> tuple[int, int | None] | None:
    """Return (audit id, batch id) of the audit that is claimed next, or None."""
    statement = (
        select(Audit.id, Audit.batch_id)
        .where(in_line_for(stage), is_free())
        .order_by(*order())
        .limit(1)
    )
    row = session.execute(statement).one_or_none()
    return None if row is None else (row.id, row.batch_id)
