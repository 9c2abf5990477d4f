"""What waits, what runs and how fast it goes: counted in Postgres, which is the truth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.line import Stage, in_line_for, is_free
from db.models import Audit
from halldetect.trail import Status


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The line before one stage.

    Parameters
    ----------
    stage : Stage
        What is waited for.
    waiting, running : int
        Audits that are nobody's, and audits under lease.
    oldest_seconds : float or None
        How long ago the oldest that waits was submitted.
    """

    stage: Stage
    waiting: int
    running: int
    oldest_seconds: float | None


def queue_depths(session: Session) -> list[QueueDepth]:
    """Return the line before each stage."""
    return [_depth(session, stage) for stage in Stage]


def _depth(session: Session, stage: Stage) -> QueueDepth:
    age = func.clock_timestamp() - func.min(Audit.submitted_at).filter(is_free())
    row = session.execute(
        select(
            func.count().filter(is_free()).label("waiting"),
            func.count().filter(~is_free()).label("running"),
            func.extract("epoch", age).label("age"),
        )
        .select_from(Audit)
        .where(in_line_for(stage))
    ).one()
    return QueueDepth(stage, row.waiting, row.running, None if row.age is None else float(row.age))


def recent_throughput(session: Session, seconds: int = 60) -> float:
    """Return the audits that ended per second, over the last `seconds`."""
    ended = session.scalars(
        select(func.count())
        .select_from(Audit)
        .where(
            Audit.finished_at > func.clock_timestamp() - timedelta(seconds=seconds),
            Audit.status != Status.CANCELLED,
        )
    ).one()
    return ended / seconds
