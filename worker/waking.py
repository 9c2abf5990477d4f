"""When a wake-up is sent: work waits, and fewer wake-ups are queued than workers could take."""

from __future__ import annotations

import time

from sqlalchemy.orm import Session, sessionmaker

from db.engine import translated
from db.line import Stage, head_of_line
from db.models import WorkerState
from db.workers import live_workers
from halldetect.logs import get_logger
from queues.names import queue_of
from queues.wake_ups import QueueUnavailable, WakeUps

# While Redis is away each try costs seconds; the sweeper sends again soon enough.
_PAUSE_SECONDS = 10.0

_log = get_logger(__name__)


class Waker:
    """Wakes workers, never more often than there are workers to wake.

    Postgres knows what waits, so a wake-up too few costs a few seconds (the sweeper finds it) and
    one too many finds nothing to do; only unbounded many would be harmful.

    Parameters
    ----------
    sessions : sessionmaker
        Where the line and the workers are read.
    wake_ups : WakeUps
        Where messages go.
    """

    def __init__(self, sessions: sessionmaker[Session], wake_ups: WakeUps) -> None:
        self._sessions = sessions
        self._wake_ups = wake_ups
        self._silent_until = 0.0

    def wake(self, stage: Stage, reason: str) -> bool:
        """Send one wake-up for a stage if it is needed, and tell whether it was sent.

        A broker that cannot be reached is only logged, and then left alone for a while.

        Raises
        ------
        DatabaseUnavailable
            When Postgres cannot say whether anything waits.
        """
        if time.monotonic() < self._silent_until:
            return False
        with translated(), self._sessions.begin() as session:
            head = head_of_line(session, stage)
            if head is None:
                return False
            workers = live_workers(session, queue=queue_of(stage))
        able = [worker for worker in workers if worker.state is not WorkerState.FAILED]
        audit_id, batch_id = head
        try:
            # Without any worker one wake-up waits for the first that starts.
            if self._wake_ups.queued(queue_of(stage)) >= max(1, len(able)):
                return False
            ids = {"batch_id": batch_id, "audit_id": audit_id if batch_id is None else None}
            task_id = self._wake_ups.send(stage, **ids, reason=reason)
        except QueueUnavailable as error:
            _log.warning("no wake-up was sent", stage=stage.value, error=str(error))
            self._silent_until = time.monotonic() + _PAUSE_SECONDS
            return False
        _log.info("sent a wake-up", stage=stage.value, reason=reason, **ids, sent_task_id=task_id)
        return True
