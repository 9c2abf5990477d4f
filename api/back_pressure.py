"""Bounds on what waits, in all and of one key: more is refused until workers have caught up."""

from __future__ import annotations

import threading
import time

from sqlalchemy.orm import Session

from api.problems import Kind, Problem
from db.backlog import count_waiting
from halldetect.errors import LimitError
from halldetect.wording import counted

RETRY_SECONDS = 30
_SECONDS_BETWEEN_COUNTS = 1.0
# Counting a long line takes a while: at most one part in so many of the time goes into it.
_SHARE_OF_COUNTING = 20


class BackPressure:
    """Decides whether more audits may wait, be they everybody's or one key's.

    What waits is counted in Postgres about once a second, and what this process takes in meanwhile
    is added. What other processes take in meanwhile, and what is being stored at the moment of the
    count, is not seen: by so much the bound may be exceeded.

    Parameters
    ----------
    limit : int
        Most audits that may wait.
    api_key_id : int, optional
        Whose alone are counted; None counts all.
    """

    def __init__(self, limit: int, api_key_id: int | None = None) -> None:
        self._limit = limit
        self._api_key_id = api_key_id
        owned, ending = ("", "") if api_key_id is None else (" of this API key", "_PER_KEY")
        self._owned, self._setting = owned, f"HALLDETECT_MAX_WAITING_AUDITS{ending}"
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
                f"the batch has {counted(audits, 'audit')} and at most "
                f"{self._limit:,}{self._owned} may wait ({self._setting}): send it in parts"
            )
        with self._lock:
            self._check(audits)
            self._admitted += audits

    def _count(self, session: Session, begun: float, before: int) -> None:
        next_count = 0.0
        try:
            self._counted = count_waiting(session, self._limit, self._api_key_id)
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
                f"about {waiting:,} audits{self._owned} wait, and at most {self._limit:,} may "
                f"({self._setting}); nothing was stored: send it again later",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )


class WaitingLimits:
    """The bound on all that waits, and one for each key if there is to be one.

    Parameters
    ----------
    limit : int
        Most audits that may wait.
    limit_per_key : int or None
        Most of one key; None bounds none by itself.
    """

    def __init__(self, limit: int, limit_per_key: int | None) -> None:
        self._all = BackPressure(limit)
        self._limit_per_key = limit_per_key
        self._lock = threading.Lock()
        self._of_keys: dict[int, BackPressure] = {}

    def look(self, session: Session, api_key_id: int | None) -> None:
        """See `BackPressure.look`, for what is submitted with a key, or with none."""
        for pressure in self._for(api_key_id):
            pressure.look(session)

    def admit(self, audits: int, api_key_id: int | None) -> None:
        """See `BackPressure.admit`, for what is submitted with a key, or with none."""
        # What one bound has taken in and the other refuses is counted too much, until the next
        # count a second later.
        for pressure in self._for(api_key_id):
            pressure.admit(audits)

    def _for(self, api_key_id: int | None) -> list[BackPressure]:
        if api_key_id is None or self._limit_per_key is None:
            return [self._all]
        with self._lock:
            own = self._of_keys.get(api_key_id)
            if own is None:
                own = self._of_keys[api_key_id] = BackPressure(self._limit_per_key, api_key_id)
        return [own, self._all]
