"""The bounded run behind every wake-up: load after load, for a limited time, in order.

A load is claimed, prepared, processed and written. Where looking ahead pays, exactly one load is
claimed and prepared while the one before it is in the model; and the results of the load before
that are written meanwhile, so that the model waits for nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event
from typing import Generic, Protocol, TypeVar

from sqlalchemy.orm import Session, sessionmaker

from db.claiming import ClaimedAudit
from db.engine import DatabaseUnavailable, SchemaMismatch, translated
from db.leases import Lease, begin
from db.line import Stage
from halldetect.logs import get_logger
from halldetect.settings import Settings
from worker.counters import Counters
from worker.ended import Ended
from worker.held_leases import HeldLeases
from worker.metrics import WorkerMetrics
from worker.outcomes import Outcomes
from worker.waking import Waker

_Load = TypeVar("_Load")
Finish = Callable[[], int]  # writes results, and returns how many were stored

_log = get_logger(__name__)


class WorkInterrupted(Exception):
    """The work at hand is given up where it stands: the worker stops, or the audits were lost."""


class ModelBroken(Exception):
    """The model itself fails by now, whatever it is given; the audits at hand were not judged."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """What a run shares with the process around it.

    Parameters
    ----------
    settings : Settings
        Sizes of loads, lengths of leases and runs.
    owner : str
        The worker's name on its leases.
    sessions : sessionmaker
        Where audits are claimed.
    held : HeldLeases
        The run's leases; what is left in it is the caller's to hand back.
    outcomes : Outcomes
        How attempts end.
    waker : Waker
        Wakes other workers.
    counters : Counters
        Adds up what the process does.
    metrics : WorkerMetrics
        The same and more, for Prometheus.
    stopping : Event
        Set when the worker shuts down.
    """

    settings: Settings
    owner: str
    sessions: sessionmaker[Session]
    held: HeldLeases
    outcomes: Outcomes
    waker: Waker
    counters: Counters
    metrics: WorkerMetrics
    stopping: Event

    def begin(self, stage: Stage, leases: Sequence[Lease]) -> set[Lease]:
        """Note that work on audits begins, and return the leases that are still held.

        Raises
        ------
        DatabaseUnavailable
            When it could not be noted: nothing has begun.
        """
        with translated(), self.sessions.begin() as session:
            ids = begin(session, stage, leases)
        lost = [lease for lease in leases if lease.audit_id not in ids]
        self.metrics.lost_leases(sum(self.held.lose(lease) for lease in lost))
        return {lease for lease in leases if lease.audit_id in ids and self.held.begin(lease)}


class StageWork(Protocol[_Load]):
    """What a stage does with the audits that a run claims."""

    @property
    def stage(self) -> Stage:
        """Which stage it is."""

    @property
    def looks_ahead(self) -> bool:
        """Whether the next load is claimed while one is processed."""

    def claim(self, session: Session) -> list[ClaimedAudit]:
        """Take audits from the head of the line."""

    def prepare(self, claimed: list[ClaimedAudit]) -> _Load:
        """Make a load ready for the model; an audit's own faults are kept for `process`."""

    def process(self, load: _Load) -> Finish:
        """Run the model, and return what writes the outcomes that are still to be written.

        Raises
        ------
        WorkInterrupted
            When the rest is to be handed back.
        ModelBroken
            When the model fails on what it is known to read.
        DatabaseUnavailable
            When outcomes could not be written.
        """


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run came to.

    Parameters
    ----------
    loads, audits : int
        Loads that were begun, and results that were stored.
    ended : Ended
        Why it ended.
    error : str or None
        What stood in the way, if anything did.
    """

    loads: int
    audits: int
    ended: Ended
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Claimed(Generic[_Load]):
    """A prepared load, and whether it is an audit whose last worker was lost."""

    load: _Load
    is_suspect: bool


class BoundedRun(Generic[_Load]):
    """One run of a stage.

    Parameters
    ----------
    work : StageWork
        The stage.
    tools : RunTools
        What the run shares with its process.
    """

    def __init__(self, work: StageWork[_Load], tools: RunTools) -> None:
        self._work = work
        self._tools = tools
        self._ends_at = time.monotonic() + tools.settings.run_seconds
        self._loads = 0
        self._audits = 0

    def run(self) -> RunSummary:
        """Work until nothing is left, the time is up, or the worker cannot go on."""
        error = None
        try:
            # Leaving the block waits for a claim under way, so that its leases are in `held`, and
            # for results that are being written.
            with (
                ThreadPoolExecutor(1, thread_name_prefix="look-ahead") as ahead,
                ThreadPoolExecutor(1, thread_name_prefix="writing") as writer,
            ):
                ended = self._work_through(ahead, writer)
        except SchemaMismatch as mismatch:
            ended, error = Ended.OTHER_VERSION, str(mismatch)
        except DatabaseUnavailable as outage:
            ended, error = Ended.NO_DATABASE, str(outage)
        except ModelBroken as broken:
            # Perhaps one of these audits broke it: they count as those of a lost worker, so that
            # each comes alone next time, and an audit that does it again and again fails.
            self._tools.held.abandon_begun()
            ended, error = Ended.MODEL_BROKEN, str(broken)
        return RunSummary(self._loads, self._audits, ended, error)

    def _work_through(self, ahead: ThreadPoolExecutor, writer: ThreadPoolExecutor) -> Ended:
        following: Future[_Claimed[_Load] | None] | None = None
        written: Future[None] | None = None
        was_suspect = False
        ended = Ended.STOPPING
        while not self._tools.stopping.is_set():
            if self._loads and self._is_time_up():
                ended = Ended.TIME_IS_UP
                break
            claimed = following.result() if following else self._next_load()
            if claimed is None:
                ended = Ended.NOTHING_LEFT
                break
            following = None
            if self._work.looks_ahead and not self._is_time_up():
                following = ahead.submit(copy_context().run, self._next_load)
            if written is not None and (claimed.is_suspect or was_suspect):
                # One that kills its worker must find nothing of others that is not yet written.
                written.result()
            finish = self._process(claimed.load)
            was_suspect = claimed.is_suspect
            if written is not None:
                written.result()
            written = writer.submit(copy_context().run, self._write, finish)
        if written is not None:
            written.result()
        return ended

    def _process(self, load: _Load) -> Finish:
        self._loads += 1
        try:
            return self._work.process(load)
        except WorkInterrupted:
            _log.info("a load was given up; what is left of it is handed back")
            return lambda: 0

    def _write(self, finish: Finish) -> None:
        self._audits += finish()

    def _next_load(self) -> _Claimed[_Load] | None:
        tools = self._tools
        with translated(), tools.sessions.begin() as session:
            claimed = self._work.claim(session)
        if not claimed:
            return None
        tools.held.add(audit.lease for audit in claimed)
        tools.metrics.audits.claimed(self._work.stage, claimed)
        tools.waker.wake(self._work.stage, "more waits")
        is_suspect = any(audit.worker_lost for audit in claimed)
        return _Claimed(self._work.prepare(claimed), is_suspect)

    def _is_time_up(self) -> bool:
        return time.monotonic() >= self._ends_at
