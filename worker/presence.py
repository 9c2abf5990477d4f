"""What a worker process tells the database of itself: that it is there, and how it does."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from functools import partial

import psutil
from sqlalchemy.orm import Session, sessionmaker

from db.engine import DatabaseUnavailable, translated
from db.models import WorkerState
from db.workers import WorkerCounters, end_predecessors, heartbeat, register, unregister
from halldetect.logs import get_logger

_log = get_logger(__name__)


class Presence:
    """The row of one worker process among the workers.

    Parameters
    ----------
    sessions : sessionmaker
        Where the row is.
    name : str
        Of this process alone.
    queues : sequence of str
        Queues it takes tasks from.
    """

    def __init__(self, sessions: sessionmaker[Session], name: str, queues: Sequence[str]) -> None:
        self._sessions = sessions
        self._name = name
        self._queues = list(queues)

    def report(
        self,
        session: Session,
        *,
        state: WorkerState,
        error: str | None,
        models: Sequence[str],
        counters: WorkerCounters,
        unswept_seconds: float | None,
    ) -> None:
        """Say how the worker does; the first time, that it is there instead of its predecessors."""
        beat = partial(
            heartbeat,
            session,
            self._name,
            state=state,
            error=error,
            models=models,
            counters=counters,
            unswept_seconds=unswept_seconds,
        )
        if not beat():
            register(
                session,
                self._name,
                queues=self._queues,
                pid=os.getpid(),
                host=socket.gethostname(),
            )
            end_predecessors(
                session, self._name, host=socket.gethostname(), is_running=_is_another_process
            )
            beat()

    def sign_off(self) -> None:
        """Take the row away; a database out of reach keeps it until it is missed."""
        try:
            with translated(), self._sessions.begin() as session:
                unregister(session, self._name)
        except DatabaseUnavailable as error:
            _log.warning("the worker could not sign off", error=str(error))


def _is_another_process(pid: int) -> bool:
    """Tell whether a process runs that is not this one: in a container ids come again."""
    return pid != os.getpid() and psutil.pid_exists(pid)
