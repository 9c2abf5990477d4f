"""Whether the work goes on: leases, lines, workers and partitions, as they are at the moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.findings import Finding
from db.line import Stage
from db.models import WorkerState
from db.partitions import partition_name
from db.queue_depth import QueueDepth, queue_depths
from db.workers import LIVE_SECONDS, LiveWorker, live_workers

# Sweeps come every few seconds: what still stands after this, nobody sweeps.
_SWEEP_SECONDS = 60
_STUCK_SECONDS = 120
# Far longer than rescorings and deliveries keep the worker that sweeps from it.
_UNSWEPT_SECONDS = 300
# Longer than a few receivers that do not answer can hold the others up.
_UNSENT_SECONDS = 1800
_EXAMPLES = 5
_SWEEPER = "see that beat and a maintenance worker run (`halldetect status`)"

_HAS_DUTIES = text(
    """
    SELECT EXISTS (SELECT FROM halldetect.rescorings WHERE finished_at IS NULL)
        OR EXISTS (SELECT FROM halldetect.webhook_deliveries WHERE state = 'due')
    """
)
_LOST_LEASES = text(
    f"""
    SELECT count(*) AS total, (array_agg(DISTINCT lease_owner))[1:{_EXAMPLES}] AS owners
    FROM halldetect.audits
    WHERE lease_owner IS NOT NULL AND (
        lease_expires_at < clock_timestamp() - make_interval(secs => :sweep_seconds)
        OR NOT EXISTS (SELECT FROM halldetect.workers AS w WHERE w.name = lease_owner
            AND w.seen_at > now() - make_interval(secs => :live_seconds)))
    """  # noqa: S608
)
_UNSENT_WEBHOOKS = text(
    """
    SELECT count(*) AS total, (array_agg(DISTINCT webhook_id))[1:5] AS webhooks
    FROM halldetect.webhook_deliveries
    WHERE state = 'due'
        AND next_attempt_at < clock_timestamp() - make_interval(secs => :unsent_seconds)
    """
)
_MISSING_PARTITIONS = text(
    """
    SELECT CAST(month AS date) FROM (
        SELECT date_trunc('month', now() AT TIME ZONE 'UTC') + n * interval '1 month' AS month
        FROM generate_series(0, 1) AS n
    ) AS needed
    WHERE to_regclass(
        'halldetect.probabilities_' || to_char(month, 'YYYY_MM')) IS NULL
    ORDER BY month
    """
)


def operation_findings(
    session: Session, queue_of: Callable[[Stage], str], sweeping_queue: str
) -> list[Finding]:
    """Return what keeps audits from being worked on, or soon will.

    Parameters
    ----------
    queue_of : callable
        The queue whose workers do a stage.
    sweeping_queue : str
        The queue whose workers look for what was lost, score again and call webhooks.
    """
    workers = live_workers(session)
    found = [*_lost_leases(session), *_failed_workers(workers), *_missing_partitions(session)]
    found += _nobody_sweeps(session, workers, _able(workers, sweeping_queue))
    for depth in queue_depths(session):
        found += _stuck_line(depth, _able(workers, queue_of(depth.stage)))
    return [*found, *_unsent_webhooks(session)]


def _lost_leases(session: Session) -> list[Finding]:
    values = {"sweep_seconds": _SWEEP_SECONDS, "live_seconds": LIVE_SECONDS}
    row = session.execute(_LOST_LEASES, values).one()
    if not row.total:
        return []
    finding = Finding(
        "lost_leases",
        "audits are held by workers that no longer report, or longer than their lease",
        "they are given to others once their leases have run out (HALLDETECT_LEASE_SECONDS); if "
        f"they are still held a minute later, {_SWEEPER}",
        row.total,
        tuple(row.owners),
    )
    return [finding]


def _failed_workers(workers: list[LiveWorker]) -> list[Finding]:
    return [
        Finding(
            "failed_workers",
            f"the worker {worker.name} takes no work: {worker.error}",
            "mend what it says; it tries again at later wake-ups",
        )
        for worker in workers
        if worker.state is WorkerState.FAILED
    ]


def _nobody_sweeps(
    session: Session, workers: list[LiveWorker], sweepers: list[LiveWorker]
) -> list[Finding]:
    if not sweepers:
        # Where no worker at all reports and nothing is to do, the service was not started.
        if not workers and not session.scalar(_HAS_DUTIES):
            return []
        finding = Finding(
            "maintenance",
            "no maintenance worker reports: lost work and lost wake-ups are not brought back, "
            "nothing is scored again and no webhook is called",
            "see whether its process is there and what its log says; start it again if it does "
            "not go on: `halldetect up` does that itself once the process is killed, else "
            "`celery -A worker.app worker` as docs/operations.md says",
        )
        return [finding]
    unswept = [worker.unswept_seconds for worker in sweepers if worker.unswept_seconds is not None]
    if not unswept or min(unswept) < _UNSWEPT_SECONDS:
        return []
    finding = Finding(
        "maintenance",
        f"nobody has looked for lost work for {min(unswept):,.0f} s, though maintenance workers "
        "report",
        "beat does not send what asks for it, or Redis does not hand it on: start beat again, and "
        "see that Redis answers",
        len(sweepers),
        tuple(worker.name for worker in sweepers[:_EXAMPLES]),
    )
    return [finding]


def _able(workers: list[LiveWorker], queue: str) -> list[LiveWorker]:
    return [
        worker
        for worker in workers
        if queue in worker.queues and worker.state in (WorkerState.READY, WorkerState.LOADING)
    ]


def _stuck_line(depth: QueueDepth, workers: list[LiveWorker]) -> list[Finding]:
    if not depth.waiting:
        return []
    check, what = f"{depth.stage.value}_line", f"audits wait for {depth.stage.value}"
    if not workers:
        finding = Finding(
            check,
            f"{what} and no worker for it lives",
            "start one: `halldetect up`, or `celery -A worker.app worker` as docs/operations.md "
            "says",
            depth.waiting,
        )
        return [finding]
    is_ready = any(worker.state is WorkerState.READY for worker in workers)
    age = depth.oldest_seconds or 0.0
    if depth.running or not is_ready or age < _STUCK_SECONDS:
        return []
    finding = Finding(
        check,
        f"{what}, the oldest for {age:,.0f} s, while workers are ready and none is at work",
        "wake-ups do not arrive, unless it was this very moment (call again): see that Redis "
        f"answers; {_SWEEPER}",
        depth.waiting,
        tuple(worker.name for worker in workers[:_EXAMPLES]),
    )
    return [finding]


def _unsent_webhooks(session: Session) -> list[Finding]:
    row = session.execute(_UNSENT_WEBHOOKS, {"unsent_seconds": _UNSENT_SECONDS}).one()
    if not row.total:
        return []
    finding = Finding(
        "unsent_webhooks",
        f"messages to webhooks are due for more than {_UNSENT_SECONDS // 60} minutes",
        f"nobody sends them, or too many receivers do not answer: {_SWEEPER}; its log says what "
        "came of each attempt",
        row.total,
        tuple(f"webhook {number}" for number in row.webhooks),
    )
    return [finding]


def _missing_partitions(session: Session) -> list[Finding]:
    missing: list[date] = list(session.scalars(_MISSING_PARTITIONS))
    if not missing:
        return []
    finding = Finding(
        "partitions",
        "tables of probabilities for this month or the next are missing",
        "a maintenance worker makes them when it starts and every day; meanwhile the first write "
        f"of a month makes its own: {_SWEEPER}",
        len(missing),
        tuple(partition_name(month) for month in missing),
    )
    return [finding]
