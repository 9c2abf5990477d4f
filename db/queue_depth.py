"""What waits, what runs and how fast it goes: counted in Postgres, which is the truth.

Audits are counted from an index alone, the head of each line is found by it, and leases have an
index of their own: the table itself is not read, however many audits wait or have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.line import Stage, is_free
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
        How long ago the first that waits was submitted.
    """

    stage: Stage
    waiting: int
    running: int
    oldest_seconds: float | None


def queue_depths(session: Session) -> list[QueueDepth]:
    """Return the line before each stage; the session's transaction should see one snapshot."""
    counted = session.execute(
        select(Audit.status, func.count().label("audits"))
        .where(Audit.status.in_([stage.awaited_in for stage in Stage]))
        .group_by(Audit.status)
    )
    return depths_of(session, {row.status: row.audits for row in counted})


def depths_of(session: Session, audits: Mapping[Status, int]) -> list[QueueDepth]:
    """Return the line before each stage, where audits were counted already.

    Parameters
    ----------
    audits : Mapping
        How many there are in each status, in the same snapshot.
    """
    leased = session.execute(
        select(Audit.status, func.count().label("audits")).where(~is_free()).group_by(Audit.status)
    )
    running = {row.status: row.audits for row in leased}
    return [
        QueueDepth(
            stage,
            waiting=audits.get(stage.awaited_in, 0) - running.get(stage.awaited_in, 0),
            running=running.get(stage.awaited_in, 0),
            oldest_seconds=_oldest_seconds(session, stage),
        )
        for stage in Stage
    ]


def _oldest_seconds(session: Session, stage: Stage) -> float | None:
    age = func.extract("epoch", func.clock_timestamp() - Audit.submitted_at)
    status = stage.awaited_in
    # "Between" and not "=": only so does the order ask for the index by status, and not for the
    # primary key, which would be read from the oldest finished audit on.
    first = select(age).where(Audit.status.between(status, status), is_free())
    seconds = session.scalar(first.order_by(Audit.status, Audit.id).limit(1))
    return None if seconds is None else float(seconds)


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
