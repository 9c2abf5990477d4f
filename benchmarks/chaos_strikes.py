"""Strikes faults at a running stack, and measures how long it takes to recover from each."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
import redis
from chaos_faults import Fault
from chaos_load import Load
from own_stack import OwnStack, StackFailed

from cli.stack.addresses import VALKEY

_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 180.0
_UPLOAD_SECONDS = 5.0
_ANSWER_SECONDS = 1.0
_NEXT_AUDIT = """
    SELECT extract(epoch FROM min(finished_at) - %(at)s) FROM halldetect.audits
    WHERE finished_at > %(at)s
"""


@dataclass
class Strike:
    """One fault that was struck.

    Parameters
    ----------
    fault : Fault
        Its kind.
    at : datetime
        When.
    pid : int
        The process that was struck.
    ready_seconds : float or None
        How long until the part worked again; None when that was not seen.
    """

    fault: Fault
    at: datetime
    pid: int
    ready_seconds: float | None = None


class Striker:
    """Strikes faults, one after the other, and watches over what was struck.

    Parameters
    ----------
    stack : OwnStack
        What is struck.
    load : Load
        What is being submitted meanwhile.
    """

    def __init__(self, stack: OwnStack, load: Load) -> None:
        self.strikes: list[Strike] = []
        self._stack = stack
        self._load = load
        self._watches: list[threading.Thread] = []

    def strike(self, fault: Fault) -> bool:
        """Strike once, if the part is ready; tell whether it was struck."""
        if not fault.during_upload:
            return self._strike(fault)
        with self._load.last_piece:
            return self._load.upload_under_way.wait(_UPLOAD_SECONDS) and self._strike(fault)

    def _strike(self, fault: Fault) -> bool:
        pid = self._stack.pid(fault.part)
        if pid is None:
            return False
        strike = Strike(fault, datetime.now(UTC), pid)
        began = time.monotonic()
        try:
            fault.strike(self._stack, pid)
        except (ProcessLookupError, redis.RedisError, psycopg.OperationalError):
            return False  # it went down by itself in this moment
        self.strikes.append(strike)
        watch = threading.Thread(target=self._watch, args=(strike, began), daemon=True)
        self._watches.append(watch)
        watch.start()
        return True

    def strike_at_random(
        self, faults: Sequence[Fault], *, seconds: float, every: float, draw: random.Random
    ) -> None:
        """Strike again and again for a while: each kind once in a random order, and once more.

        Parameters
        ----------
        faults : sequence of Fault
            The kinds.
        seconds : float
            How long.
        every : float
            Seconds between two strikes, on average.
        draw : random.Random
            Chooses.
        """
        ends_at = time.monotonic() + seconds
        waiting: list[Fault] = []
        while time.monotonic() < ends_at:
            time.sleep(every * draw.uniform(0.5, 1.5))
            waiting = waiting or draw.sample(faults, len(faults))
            # What cannot be struck now, since the part is down already, keeps its place.
            struck = next((fault for fault in waiting if self.strike(fault)), None)
            waiting = [fault for fault in waiting if fault is not struck]

    def wait_for_recovery(self) -> None:
        """Wait until every watch has ended, one way or the other."""
        for watch in self._watches:
            watch.join()

    def _watch(self, strike: Strike, began: float) -> None:
        while time.monotonic() - began < _PATIENCE_SECONDS:
            if self._is_back(strike):
                strike.ready_seconds = time.monotonic() - began
                return
            time.sleep(_POLL_SECONDS)

    def _is_back(self, strike: Strike) -> bool:
        try:
            if strike.fault.starts_again:
                return self._stack.pid(strike.fault.part) not in (None, strike.pid)
            return self._answers(strike.fault.part)
        except StackFailed:
            return False

    def _answers(self, server: str) -> bool:
        stack = self._stack.running
        try:
            if server == VALKEY:
                with redis.Redis.from_url(
                    stack.redis_url, socket_timeout=_ANSWER_SECONDS
                ) as client:
                    return bool(client.ping())
            with psycopg.connect(stack.database_url, connect_timeout=2) as connection:
                return connection.execute("SELECT true").fetchone() == (True,)
        except (redis.RedisError, psycopg.OperationalError):
            return False


@dataclass(frozen=True)
class Recovery:
    """How the service recovered from the faults of one kind.

    Parameters
    ----------
    fault : str
        The kind.
    struck : int
        How often.
    ready_seconds, next_audit_seconds : tuple of float
        Median and longest time until the part worked again, and until the next audit was finished;
        empty where neither was seen.
    """

    fault: str
    struck: int
    ready_seconds: tuple[float, ...]
    next_audit_seconds: tuple[float, ...]


def recoveries(
    stack: OwnStack, faults: Iterable[Fault], strikes: Sequence[Strike]
) -> list[Recovery]:
    """Sum up the strikes by kind; those never struck are listed too."""
    with psycopg.connect(stack.running.database_url) as connection:
        return [
            _recovery(connection, fault, [one for one in strikes if one.fault is fault])
            for fault in faults
        ]


def _recovery(
    connection: psycopg.Connection[tuple[float | None]], fault: Fault, strikes: Sequence[Strike]
) -> Recovery:
    ready = [one.ready_seconds for one in strikes if one.ready_seconds is not None]
    rows = [connection.execute(_NEXT_AUDIT, {"at": one.at}).fetchone() for one in strikes]
    audits = [float(row[0]) for row in rows if row is not None and row[0] is not None]
    return Recovery(
        fault.name, len(strikes), _middle_and_longest(ready), _middle_and_longest(audits)
    )


def _middle_and_longest(seconds: Sequence[float]) -> tuple[float, ...]:
    return (statistics.median(seconds), max(seconds)) if seconds else ()
