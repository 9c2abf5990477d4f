"""The bounded run behind a rescoring's wake-up: chunk after chunk, from stored probabilities.

No model is loaded, nor any library of one. While a chunk is scored and stored, the next is read
over another connection.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from enum import StrEnum
from threading import Event

from sqlalchemy import Engine
from structlog.contextvars import bound_contextvars

from db.engine import DatabaseUnavailable, read_one_snapshot, session_factory, translated
from db.rescorings import (
    ChunkOutcome,
    RescoringOvertaken,
    RescoringStatus,
    Skip,
    advance_rescoring,
    begin_rescoring,
    claim_stalled_rescorings,
    complete_rescoring,
    fail_rescoring,
    rescoring_lock,
)
from db.scorings import AuditDeleted, store_scorings
from db.stored_matrices import (
    StoredCells,
    next_audits,
    read_cells,
    scored_audits,
)
from halldetect.logs import get_logger
from halldetect.scoring.fit import score_fitting
from queues.wake_ups import QueueUnavailable, WakeUps

PROBABILITIES_PRUNED = "probabilities_pruned"
"""Why an audit is skipped whose probabilities were deleted before the audit itself."""

# Every chunk shows that a rescoring is worked on, and takes seconds.
_STALLED_SECONDS = 60.0

_log = get_logger(__name__)


class RescoringEnded(StrEnum):
    """Why a run ended."""

    COMPLETED = "the rescoring is completed"
    FAILED = "the rescoring failed"
    OVER = "there is nothing left to do"
    HELD_ELSEWHERE = "another worker is on it"
    TIME_IS_UP = "its time is up"
    STOPPING = "the worker stops"

    @property
    def leaves_work(self) -> bool:
        """Whether somebody has to go on, and nobody does."""
        return self in (RescoringEnded.TIME_IS_UP, RescoringEnded.STOPPING)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Audits to go on with, and the matrices of those that have no score yet."""

    last_audit_id: int
    present: int
    stored: StoredCells


class Rescorer:
    """Works on rescorings, one at a time, and wakes others for what it leaves.

    Parameters
    ----------
    engine : Engine
        A run takes three of its connections.
    wake_ups : WakeUps
        Where messages go.
    run_seconds : float
        No chunk is begun after this time.
    stopping : Event
        Set when the worker shuts down.
    """

    def __init__(
        self, engine: Engine, wake_ups: WakeUps, *, run_seconds: float, stopping: Event
    ) -> None:
        self._engine = engine
        self._sessions = session_factory(engine)
        self._wake_ups = wake_ups
        self._run_seconds = run_seconds
        self._stopping = stopping

    def run(self, rescoring_id: int) -> RescoringEnded:
        """Work on a rescoring until it is done, the time is up, or the worker stops.

        For what is left one wake-up is sent.

        Raises
        ------
        DatabaseUnavailable
            What was not committed is lost; the rest stays, and `wake_stalled` finds it.
        """
        with bound_contextvars(rescoring_id=rescoring_id), translated():
            with rescoring_lock(self._engine, rescoring_id) as is_ours:
                ended = self._run_alone(rescoring_id) if is_ours else RescoringEnded.HELD_ELSEWHERE
            _log.info("rescoring run ended", ended=ended.value)
            if ended.leaves_work:
                self._wake(rescoring_id, "successor")
            return ended

    def wake_stalled(self) -> None:
        """Send a wake-up for every rescoring whose own was lost, or its worker.

        Raises
        ------
        DatabaseUnavailable
            When Postgres cannot say which.
        """
        with translated(), self._sessions.begin() as session:
            stalled = claim_stalled_rescorings(session, _STALLED_SECONDS)
        for rescoring_id in stalled:
            self._wake(rescoring_id, "swept")

    def _wake(self, rescoring_id: int, reason: str) -> None:
        try:
            self._wake_ups.send_rescoring(rescoring_id, reason=reason)
        except QueueUnavailable as error:
            _log.warning("no wake-up was sent", rescoring_id=rescoring_id, error=str(error))

    def _run_alone(self, rescoring_id: int) -> RescoringEnded:
        with translated(), self._sessions.begin() as session:
            status = begin_rescoring(session, rescoring_id)
        if status is None:
            return RescoringEnded.OVER
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="look-ahead") as ahead:
                return self._work_through(status, ahead)
        except RescoringOvertaken:
            return RescoringEnded.HELD_ELSEWHERE
        except DatabaseUnavailable:
            raise
        except Exception as error:  # every further try would meet it too
            _log.exception("a rescoring failed")
            with translated(), self._sessions.begin() as session:
                fail_rescoring(session, rescoring_id, f"{type(error).__name__}: {error}")
            return RescoringEnded.FAILED

    def _work_through(self, status: RescoringStatus, ahead: ThreadPoolExecutor) -> RescoringEnded:
        ends_at = time.monotonic() + self._run_seconds
        after = status.last_audit_id
        chunk = self._read(status, after)
        while chunk is not None:
            if self._stopping.is_set():
                return RescoringEnded.STOPPING
            if after != status.last_audit_id and time.monotonic() >= ends_at:
                return RescoringEnded.TIME_IS_UP
            following = ahead.submit(copy_context().run, self._read, status, chunk.last_audit_id)
            try:
                self._store(status, after, chunk)
            except AuditDeleted:
                following.result()
                chunk = self._read(status, after)
                continue
            after = chunk.last_audit_id
            chunk = following.result()
        with translated(), self._sessions.begin() as session:
            complete_rescoring(session, status.id)
        return RescoringEnded.COMPLETED

    def _read(self, status: RescoringStatus, after_audit_id: int) -> _Chunk | None:
        with translated(), self._sessions.begin() as session:
            read_one_snapshot(session)
            audits = next_audits(session, status.selection, after_audit_id)
            if not len(audits):
                return None
            is_present = scored_audits(session, status.policy.id, audits)
            missing = audits.only(~is_present)
            stored = read_cells(session, missing, status.policy.policy)
        return _Chunk(int(audits.ids[-1]), int(is_present.sum()), stored)

    def _store(self, status: RescoringStatus, after_audit_id: int, chunk: _Chunk) -> None:
        fitting = score_fitting(chunk.stored.cells, status.policy.policy)
        audit_ids = chunk.stored.audit_ids
        skips = {
            reason.value: Skip(len(numbers), int(audit_ids[numbers[0]]))
            for reason, numbers in fitting.misfits.items()
            if len(numbers)
        }
        if chunk.stored.pruned:
            skips[PROBABILITIES_PRUNED] = Skip(len(chunk.stored.pruned), chunk.stored.pruned[0])
        with translated(), self._sessions.begin() as session:
            scored = store_scorings(
                session, status.policy.id, audit_ids[fitting.audits], fitting.score
            )
            # What another rescoring stored meanwhile is present.
            present = chunk.present + len(fitting.audits) - scored
            outcome = ChunkOutcome(chunk.last_audit_id, scored, present, skips)
            advance_rescoring(session, status.id, after_audit_id, outcome)
