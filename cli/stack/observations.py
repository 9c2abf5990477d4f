"""What the database says of the running stack: lines, speed, and the workers' own reports."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.orm import Session, sessionmaker

from db.engine import make_engine, read_one_snapshot, session_factory, translated
from db.leases import held_by_owner
from db.models import WorkerState
from db.queue_depth import QueueDepth, queue_depths, recent_throughput
from db.workers import LiveWorker, live_workers
from halldetect.errors import HallDetectError

_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class Observation:
    """One look at the database.

    Parameters
    ----------
    depths : tuple of QueueDepth
        The line before each stage.
    audits_per_second : float
        Audits that ended, over the last minute.
    workers : tuple of LiveWorker
        As they last reported.
    held : Mapping
        How many audits each worker holds, by its name.
    fault : str or None
        Why there are no numbers.
    is_known : bool
        False before the first look.
    """

    depths: tuple[QueueDepth, ...] = ()
    audits_per_second: float = 0.0
    workers: tuple[LiveWorker, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    fault: str | None = None
    is_known: bool = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, runs or has just ended."""
        return (
            self.fault is None
            and self.audits_per_second == 0
            and all(depth.waiting == depth.running == 0 for depth in self.depths)
        )

    def worker(self, pid: int | None) -> LiveWorker | None:
        """Return what the worker with this process id, on this machine, reported."""
        for worker in self.workers:
            if worker.pid == pid and worker.host == socket.gethostname():
                return worker
        return None


NOT_LOOKED = Observation(is_known=False)


def observe(database_url: str) -> Observation:
    """Look once."""
    engine = make_engine(database_url, pool_size=1)
    try:
        return _look(session_factory(engine))
    finally:
        engine.dispose()


class Observer:
    """Looks once a second, in a thread of its own: a slow database must not delay the screen."""

    def __init__(self) -> None:
        self.latest = NOT_LOOKED
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, database_url: str) -> None:
        """Begin to look at a database."""
        self._thread = threading.Thread(
            target=self._run, args=(database_url,), name="observer", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End, and leave the database."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join(timeout=_SECONDS_BETWEEN_LOOKS)

    def worker_is_ready(self, pid: int) -> bool:
        """Tell whether the worker with this process id has loaded its models."""
        worker = self.latest.worker(pid)
        return worker is not None and worker.state is WorkerState.READY

    def _run(self, database_url: str) -> None:
        engine = make_engine(database_url, pool_size=1)
        try:
            sessions = session_factory(engine)
            while not self._is_over.wait(_SECONDS_BETWEEN_LOOKS):
                self.latest = _look(sessions)
        finally:
            engine.dispose()


def _look(sessions: sessionmaker[Session]) -> Observation:
    try:
        with translated(), sessions.begin() as session:
            read_one_snapshot(session)
            return Observation(
                depths=tuple(queue_depths(session)),
                audits_per_second=recent_throughput(session),
                workers=tuple(live_workers(session)),
                held=held_by_owner(session),
            )
    except HallDetectError as error:
        return Observation(fault=str(error))
