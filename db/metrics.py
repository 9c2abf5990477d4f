"""Figures for a monitoring system, read from indexes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Audit
from db.queue_depth import QueueDepth, depths_of
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
    return ServiceMetrics(
        audits=audits,
        faults=sum(row.faults for row in counted),
        depths=depths_of(session, audits),
        workers=live_workers(session),
    )
