"""Figures for a monitoring system, read from indexes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, literal_column, select
from sqlalchemy.orm import Session

from db.models import Audit, WebhookDelivery
from db.queue_depth import QueueDepth, depths_of
from db.workers import LiveWorker, live_workers
from halldetect.trail import Status


@dataclass(frozen=True, slots=True)
class WebhookDeliveries:
    """Messages to webhooks that are on their way.

    Parameters
    ----------
    waiting : int
        Those whose batch is not finished.
    due : int
        Those whose batch is finished, and which no receiver has taken yet.
    oldest_due_seconds : float
        Since the first of those became due; 0 without any.
    """

    waiting: int
    due: int
    oldest_due_seconds: float


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
    deliveries : WebhookDeliveries
        What webhooks are still to be told.
    """

    audits: dict[Status, int]
    faults: int
    depths: list[QueueDepth]
    workers: list[LiveWorker]
    deliveries: WebhookDeliveries


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
        deliveries=_deliveries(session),
    )


def _deliveries(session: Session) -> WebhookDeliveries:
    # The states stand in the text, so that the planner knows that the partial indexes will do.
    waiting = select(func.count()).where(WebhookDelivery.state == literal_column("'waiting'"))
    age = func.extract("epoch", func.statement_timestamp() - func.min(WebhookDelivery.due_since))
    due = select(func.count().label("due"), func.coalesce(age, 0).label("oldest")).where(
        WebhookDelivery.state == literal_column("'due'")
    )
    row = session.execute(due).one()
    # A clock that was set back between two transactions would make an age below 0.
    return WebhookDeliveries(
        waiting=session.scalars(waiting).one(),
        due=row.due,
        oldest_due_seconds=max(0.0, float(row.oldest)),
    )
