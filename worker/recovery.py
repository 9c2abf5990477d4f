"""The sweeper: brings back audits whose worker was lost, and wakes workers for what waits."""

from __future__ import annotations

import time

from sqlalchemy.orm import Session, sessionmaker

from db.engine import DatabaseUnavailable, translated
from db.leases import Recovered, recover_expired
from db.line import Stage
from db.workers import forget_lost
from halldetect.logs import get_logger
from worker.metrics import WorkerMetrics
from worker.waking import Waker

_log = get_logger(__name__)


class Sweeper:
    """Mends what a lost worker, a lost message or an emptied Redis leaves behind.

    It may run at any time and anywhere, twice at once too.

    Parameters
    ----------
    sessions : sessionmaker
        Where the truth is.
    waker : Waker
        Wakes workers.
    max_attempts : int
        Faults at which an audit fails.
    metrics : WorkerMetrics
        Counts what was lost.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        waker: Waker,
        *,
        max_attempts: int,
        metrics: WorkerMetrics,
    ) -> None:
        self._sessions = sessions
        self._waker = waker
        self._max_attempts = max_attempts
        self._metrics = metrics
        self._is_after_outage = False
        self._swept_at = time.monotonic()

    @property
    def unswept_seconds(self) -> float:
        """How long the last round that reached the database is ago, or the start without one."""
        return time.monotonic() - self._swept_at

    def sweep(self) -> None:
        """Do one round.

        Raises
        ------
        DatabaseUnavailable
            When Postgres cannot be reached. No lease could be renewed meanwhile, so the next
            round takes none away: their holders go first.
        """
        try:
            recovered = self._recover()
            woken = [stage.value for stage in Stage if self._waker.wake(stage, "swept")]
        except DatabaseUnavailable:
            self._is_after_outage = True
            raise
        self._is_after_outage = False
        self._swept_at = time.monotonic()
        self._metrics.swept(recovered)
        if recovered != Recovered():
            _report(recovered)
        if woken:
            _log.info("work was waiting for a wake-up", stages=woken)

    def _recover(self) -> Recovered:
        with translated(), self._sessions.begin() as session:
            forget_lost(session)
            if self._is_after_outage:
                return Recovered()
            return recover_expired(session, self._max_attempts)


def _report(recovered: Recovered) -> None:
    _log.warning("workers were lost", requeued=recovered.requeued, failed=recovered.failed)
    for message, audits in (
        ("its worker was lost: the audit waits to be run alone", recovered.charged),
        ("its workers were lost: the audit failed", recovered.poison),
    ):
        for lost in audits:
            _log.warning(
                message, audit_id=lost.audit_id, batch_id=lost.batch_id, stage=lost.stage.value
            )
