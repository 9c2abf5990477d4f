"""How much waits, for whoever may refuse more."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Audit
from halldetect.trail import Status


def count_waiting(session: Session, at_most: int) -> int:
    """Count the audits that have not ended, held by a worker or not, up to a number.

    Read from an index alone.
    """
    waiting = (
        select(Audit.id)
        .where(Audit.status.in_([Status.QUEUED, Status.EXTRACTED]))
        .limit(at_most)
        .subquery()
    )
    return session.scalars(select(func.count()).select_from(waiting)).one()
