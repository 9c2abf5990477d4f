"""Figures for a monitoring system, read from indexes.

Audits are counted from an index alone, the head of each line is found by it, and leases have an
index of their own: the table itself is not read, however many audits wait or have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.line import Stage, is_free
from db.models import Audit
from db.queue_depth import QueueDepth
from db.workers import LiveWorker, live_workers
from halldetect.trail import Status


@dataclass(frozen=True, slots=True)
class ServiceMetrics:
    """The service at one moment.

    Parameters
    ----------
    audits : dict
        How many there are in each status.
    faults : int
        Of all audits that are stored; less after a retry or a prune.
    depths : list of QueueDepth
        The line before each stage; its oldest is the first that was submitted.
    workers : list of LiveWorker
        Those that reported lately.
    """

    audits: dict[Status, int]
    faults: int
    depths: list[QueueDepth]
    workers: list[LiveWorker]


def service_metrics(session: Session) -> ServiceMetrics:
    """Read all figures."""
    counted = session.execute(
        select(
            Audit.status, func.count().label("audits"), func.sum(Audit.faults).label("faults")
        ).group_by(Audit.status)
    ).all()
    audits = dict.fromkeys(Status, 0) | {row.status: row.audits for row in counted}
    leased = session.execute(
        select(Audit.status, func.count().label("audits")).where(~is_free()).group_by(Audit.status)
    )
    running = {row.status: row.audits for row in leased}
    return ServiceMetrics(
        audits=audits,
        faults=sum(row.faults for row in counted),
        depths=[
            QueueDepth(
                stage,
                waiting=audits[stage.awaited_in] - running.get(stage.awaited_in, 0),
                running=running.get(stage.awaited_in, 0),
                oldest_seconds=_oldest_seconds(session, stage),
            )
            for stage in Stage
        ],
        workers=live_workers(session),
    )


def _oldest_seconds(session: Session, stage: Stage) -> float | None:
    age = func.extract("epoch", func.clock_timestamp() - Audit.submitted_at)
    status = stage.awaited_in
    # "Between" and not "=": only so does the order ask for the index by status, and not for the
    # primary key, which would be read from the oldest finished audit on.
    first = select(age).where(Audit.status.between(status, status), is_free())
    seconds = session.scalar(first.order_by(Audit.status, Audit.id).limit(1))
    return None if seconds is None else float(seconds)
