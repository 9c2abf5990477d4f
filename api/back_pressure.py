"""A bound on what waits: more is refused until workers have caught up."""

from __future__ import annotations

import threading
import time

from sqlalchemy.orm import Session

from api.problems import Kind, Problem
from db.backlog import count_waiting
from halldetect.errors import LimitError

RETRY_SECONDS = 30
_SECONDS_BETWEEN_COUNTS = 1.0
# Counting a long line takes a while: at most one part in so many of the time goes into it.
_SHARE_OF_COUNTING = 20


class BackPressure:
    """Decides whether more audits may wait.

    What waits is counted in Postgres about once a second, and what this process takes in meanwhile
    is added. What other processes take in meanwhile, and what is being stored at the moment of the
    count, is not seen: by so much the bound may be exceeded.

    Parameters
    ----------
    limit : int
        Most audits that may wait.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._counted = 0
        self._admitted = 0  # since the last count
        self._count_at = 0.0

    def look(self, session: Session) -> None:
        """Count what waits if the last count is old; only what was committed should be seen.

        Raises
        ------
        Problem
            When nothing more may wait already.
        """
        with self._lock:
            begun, before = time.monotonic(), self._admitted
            is_due = begun >= self._count_at
            if is_due:
                self._count_at = float("inf")  # nobody else counts meanwhile
        if is_due:
            self._count(session, begun, before)
        self._check(0)

    def admit(self, audits: int) -> None:
        """Let `audits` more wait, if they may; `look` first, before they are stored.

        Raises
        ------
        Problem
            When too much waits already.
        LimitError
            When they are more than may ever wait.
        """
        if audits > self._limit:
            raise LimitError(
                f"the batch has {audits:,} audits and at most {self._limit:,} may wait "
                "(HALLDETECT_MAX_WAITING_AUDITS): send it in parts"
            )
        with self._lock:
            self._check(audits)
            self._admitted += audits

    def _count(self, session: Session, begun: float, before: int) -> None:
        next_count = 0.0
        try:
            self._counted = count_waiting(session, self._limit)
            ended = time.monotonic()
            pause = max(_SECONDS_BETWEEN_COUNTS, _SHARE_OF_COUNTING * (ended - begun))
            next_count = ended + pause
        finally:
            with self._lock:
                self._count_at = next_count
                if next_count:
                    self._admitted -= before

    def _check(self, more: int) -> None:
        waiting = self._counted + self._admitted
        if waiting + max(more, 1) > self._limit:
            raise Problem(
                429,
                Kind.TOO_MUCH_WAITING,
                f"about {waiting:,} audits wait, and at most {self._limit:,} may "
                "(HALLDETECT_MAX_WAITING_AUDITS); nothing was stored: send it again later",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
