"""Tells receivers that batches are finished: the bounded run behind the wake-up for deliveries.

Requests run side by side in threads; the run itself claims and records. A run is short, since
sweeps and rescorings wait for it on the same queue.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from enum import StrEnum
from threading import Event

from sqlalchemy.orm import Session, sessionmaker
from structlog.contextvars import bound_contextvars

from db.batches import batch_state
from db.engine import translated
from db.webhook_deliveries import (
    ClaimedDelivery,
    claim_delivery,
    fail_revoked,
    is_any_due,
    mark_due,
    put_back,
    record_failure,
    record_success,
)
from db.webhook_secrets import forget_expired_secrets
from halldetect.logs import get_logger
from halldetect.webhook_targets import loggable_target
from queues.wake_ups import QueueUnavailable, WakeUps
from worker.metrics import GivenUp, WorkerMetrics
from worker.webhook_answers import Answer, AttemptOutcome
from worker.webhook_message import Message, batch_finished
from worker.webhook_pauses import pause_after
from worker.webhook_sender import DEADLINE_SECONDS, WebhookSender

RUN_SECONDS = 10.0
_AT_ONCE = 8
# One owner's dead receivers leave most of the room to the others.
_AT_ONCE_OF_ONE_OWNER = 2
# An attempt of which nothing is heard is repeated then: longer than any takes.
_HOLD_SECONDS = 6 * DEADLINE_SECONDS
_GONE = 410

_log = get_logger(__name__)


class DeliveryRunEnded(StrEnum):
    """Why a run ended."""

    NOTHING_DUE = "nothing is due"
    TIME_IS_UP = "its time is up"
    STOPPING = "the worker stops"


class Courier:
    """Finds deliveries that are due and makes them.

    Parameters
    ----------
    sessions : sessionmaker
        Where deliveries are; one connection at a time is used.
    wake_ups : WakeUps
        Where messages go.
    sender : WebhookSender
        Makes requests.
    stopping : Event
        Set when the worker shuts down.
    metrics : WorkerMetrics
        Counts attempts, and what is given up.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        wake_ups: WakeUps,
        sender: WebhookSender,
        *,
        stopping: Event,
        metrics: WorkerMetrics,
    ) -> None:
        self._sessions = sessions
        self._wake_ups = wake_ups
        self._sender = sender
        self._stopping = stopping
        self._metrics = metrics
        self._looked_until = 0  # a sweep sees a part of what waits, when very much does

    def wake(self) -> None:
        """Look for batches that are finished, and send one wake-up if anything is due.

        Raises
        ------
        DatabaseUnavailable
            When Postgres cannot say.
        """
        with translated(), self._sessions.begin() as session:
            marked, self._looked_until = mark_due(session, self._looked_until)
            is_due = is_any_due(session)
            forget_expired_secrets(session)
        if marked:
            _log.info("batches are finished that somebody is to be told of", deliveries=marked)
        if is_due:
            self._wake("swept")

    def run(self) -> DeliveryRunEnded:
        """Make deliveries until none is due, the time is up, or the worker stops.

        For what is left one wake-up is sent. What has begun is waited for: a deadline bounds it.

        Raises
        ------
        DatabaseUnavailable
            What could not be recorded is sent again later.
        """
        with translated(), self._sessions.begin() as session:
            if revoked := fail_revoked(session):
                _log.warning("deliveries of revoked keys were given up", deliveries=revoked)
        self._metrics.gave_up(GivenUp.KEY_REVOKED, revoked)
        ended = self._deliver()
        _log.info("deliveries ended", ended=ended.value)
        if ended is DeliveryRunEnded.TIME_IS_UP:
            self._wake("successor")
        return ended

    def _deliver(self) -> DeliveryRunEnded:
        ends_at = time.monotonic() + RUN_SECONDS
        sending: dict[Future[Answer], ClaimedDelivery] = {}
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="webhooks") as pool:
            while True:
                if self._stopping.is_set():
                    ended = DeliveryRunEnded.STOPPING
                elif time.monotonic() >= ends_at:
                    ended = DeliveryRunEnded.TIME_IS_UP
                else:
                    ended = DeliveryRunEnded.NOTHING_DUE
                    self._begin_all(pool, sending)
                if not sending:
                    return ended
                done, _ = wait(sending, return_when=FIRST_COMPLETED)
                for future in done:
                    self._record(sending.pop(future), future)

    def _begin_all(
        self, pool: ThreadPoolExecutor, sending: dict[Future[Answer], ClaimedDelivery]
    ) -> None:
        """Begin what is due, as much as there is room for."""
        while len(sending) < _AT_ONCE:
            owners = Counter(claimed.owner for claimed in sending.values())
            busy = [owner for owner, count in owners.items() if count >= _AT_ONCE_OF_ONE_OWNER]
            with translated(), self._sessions.begin() as session:
                claimed = claim_delivery(session, hold_seconds=_HOLD_SECONDS, busy_owners=busy)
                if claimed is None:
                    return
            message = self._message(claimed)
            if message is not None:
                context = copy_context()
                future = pool.submit(context.run, self._sender.send, claimed.url, message)
                sending[future] = claimed

    def _message(self, claimed: ClaimedDelivery) -> Message | None:
        with translated(), self._sessions.begin() as session:
            batch = batch_state(session, claimed.batch_id)
            if batch is not None and batch.waiting:
                put_back(session, claimed)
        if batch is None or batch.waiting:  # pruned, or retried, since it was claimed
            return None
        return batch_finished(claimed, batch)

    def _record(self, claimed: ClaimedDelivery, future: Future[Answer]) -> None:
        with bound_contextvars(
            webhook_id=claimed.webhook_id,
            batch_id=claimed.batch_id,
            attempt=claimed.attempt,
            target=loggable_target(claimed.url),
        ):
            fault = future.exception()
            if fault is not None:  # it would come again at once, for ever
                _log.error("a delivery met a fault of ours", exc_info=fault)
                error = f"a fault of the service: {type(fault).__name__}"
                answer = Answer(AttemptOutcome.FAULT, error=error)
            else:
                answer = future.result()
            self._metrics.attempted(answer.outcome)
            if answer.status is not None and answer.error is None:
                is_last = self._record_success(claimed, answer.status)
            else:
                is_last = self._record_failure(claimed, answer)
            if not is_last:
                _log.info("the outcome of an overtaken attempt was not written")

    def _record_success(self, claimed: ClaimedDelivery, status: int) -> bool:
        _log.info("webhook delivered", status=status)
        with translated(), self._sessions.begin() as session:
            return record_success(session, claimed, status)

    def _record_failure(self, claimed: ClaimedDelivery, answer: Answer) -> bool:
        error = answer.error or ""
        is_gone = answer.status == _GONE
        pause = None if is_gone else pause_after(claimed.attempt, answer.retry_after)
        _log.warning(
            "webhook given up" if pause is None else "webhook not delivered",
            status=answer.status,
            error=error,
            next_attempt_in=None if pause is None else round(pause.total_seconds()),
        )
        with translated(), self._sessions.begin() as session:
            is_last = record_failure(
                session, claimed, status=answer.status, error=error, pause=pause
            )
        if is_last and pause is None:
            self._metrics.gave_up(GivenUp.GONE if is_gone else GivenUp.ATTEMPTS)
        return is_last

    def _wake(self, reason: str) -> None:
        try:
            self._wake_ups.send_deliveries(reason=reason)
        except QueueUnavailable as error:
            _log.warning("no wake-up was sent", task="deliver", error=str(error))
