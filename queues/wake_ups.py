"""Wake-ups: messages that tell the workers of a stage that something waits."""

from __future__ import annotations

import time
from collections.abc import Mapping

from celery import Celery
from kombu.exceptions import KombuError
from prometheus_client import CollectorRegistry
from redis.exceptions import RedisError

from db.line import Stage
from halldetect.errors import UnavailableError
from queues.names import Queue, Task, queue_of, task_of
from queues.wake_up_metrics import WakeUpMetrics

# A Redis that stands still costs every sender seconds, in which it does nothing else: after a try
# that failed the next comes only when this many times as long has passed. A Redis that is down
# costs nothing and is tried again at once.
_SILENCE = 3


class QueueUnavailable(UnavailableError):
    """Redis cannot be reached; what waits stays in Postgres and is found by the sweeper."""


class WakeUps:
    """Sends wake-ups, and counts those that nobody has taken yet.

    Parameters
    ----------
    app : Celery
        From `queues.celery_app.make_app`.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._metrics: WakeUpMetrics | None = None
        self._silent_until = 0.0

    def count_in(self, registry: CollectorRegistry) -> None:
        """Count from now on, in the process's registry, what Redis takes and what it does not."""
        self._metrics = WakeUpMetrics(registry)

    def send(
        self,
        stage: Stage,
        *,
        reason: str,
        batch_id: int | None = None,
        audit_id: int | None = None,
    ) -> str:
        """Wake one worker of a stage.

        Parameters
        ----------
        stage : Stage
            What is to be done.
        reason : str
            Why it is sent: ``submitted``, ``extracted``, ``successor``, ``more waits``, ``swept``,
            ``retried``.
        batch_id, audit_id : int, optional
            Whose work is at the head of the line, for whoever watches the queues.

        Returns
        -------
        str
            Celery's id of the task, which the lines of the worker's log will have.

        Raises
        ------
        QueueUnavailable
            When Redis does not take it.
        """
        ids = {"batch_id": batch_id, "audit_id": audit_id}
        return self._send(task_of(stage), queue_of(stage), ids, reason)

    def send_rescoring(self, rescoring_id: int, *, reason: str) -> str:
        """Wake a worker for one rescoring.

        Parameters
        ----------
        rescoring_id : int
            Which.
        reason : str
            Why it is sent: ``submitted``, ``successor``, ``swept``.

        Returns
        -------
        str
            Celery's id of the task.

        Raises
        ------
        QueueUnavailable
            When Redis does not take it.
        """
        return self._send(Task.RESCORE, Queue.MAINTENANCE, {"rescoring_id": rescoring_id}, reason)

    def send_deliveries(self, *, reason: str) -> str:
        """Wake a worker for the deliveries of webhooks that are due.

        Parameters
        ----------
        reason : str
            Why it is sent: ``swept``, ``successor``.

        Returns
        -------
        str
            The id of the task that answers it.

        Raises
        ------
        QueueUnavailable
            When Redis does not take it.
        """
        return self._send(Task.DELIVER, Queue.MAINTENANCE, {}, reason)

    def _send(self, task: Task, queue: Queue, ids: Mapping[str, int | None], reason: str) -> str:
        began = time.monotonic()
        if began < self._silent_until:
            self._count_failure(task)
            raise QueueUnavailable("Redis did not answer a moment ago: no wake-up was sent")
        arguments = {name: value for name, value in ids.items() if value is not None}
        try:
            sent = self._app.send_task(
                task.value,
                kwargs={**arguments, "reason": reason},
                queue=queue.value,
                # One try: the caller has stored the work, and the sweeper sends again.
                retry=False,
            )
        except (KombuError, RedisError, OSError) as error:
            ended = time.monotonic()
            self._silent_until = ended + _SILENCE * (ended - began)
            self._count_failure(task)
            raise QueueUnavailable(f"Redis did not take a wake-up: {error}") from error
        if self._metrics is not None:
            self._metrics.sent(task)
        return str(sent.id)

    def _count_failure(self, task: Task) -> None:
        if self._metrics is not None:
            self._metrics.failed(task)

    def queued(self, queue: Queue) -> int:
        """Return how many messages wait in a queue.

        Raises
        ------
        QueueUnavailable
            When Redis does not answer.
        """
        try:
            with self._app.connection_for_read() as connection:
                client = connection.default_channel.client
                return int(client.llen(queue.value))
        except (KombuError, RedisError, OSError) as error:
            raise QueueUnavailable(f"Redis does not answer: {error}") from error
