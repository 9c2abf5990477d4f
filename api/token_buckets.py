"""How often somebody may do something: token buckets, in memory that is bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

_PERIOD = 60.0
_ROUNDING = 1e-6


class TokenBuckets:
    """A bucket of tokens for each owner; it fills up within a minute, and begins full.

    A full bucket is as good as none, so that only those are kept that are not. When that are too
    many, owners without a bucket share one.

    Parameters
    ----------
    per_minute : int
        How many tokens a bucket holds, and how many come back in a minute.
    most_owners : int
        Most buckets that are kept.
    clock : callable
        Returns seconds, and never goes back.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        most_owners: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds_a_token = _PERIOD / per_minute
        self._most_owners = most_owners
        self._clock = clock
        self._lock = threading.Lock()
        self._full_at: dict[Hashable, float] = {}
        self._others_full_at = 0.0

    def __len__(self) -> int:
        """Return how many buckets are kept."""
        return len(self._full_at)

    def take(self, owner: Hashable) -> float:
        """Take a token and return 0; or return in how many seconds there is one, and take none."""
        with self._lock:
            now = self._clock()
            has_own, full_at = self._bucket(owner, now)
            wait = self._wait(full_at, now)
            if wait:
                return wait
            full_at += self._seconds_a_token
            if has_own:
                self._full_at[owner] = full_at
            else:
                self._others_full_at = full_at
            return 0.0

    def seconds_until_one(self, owner: Hashable) -> float:
        """Return what `take` would return, and take nothing."""
        with self._lock:
            now = self._clock()
            _, full_at = self._bucket(owner, now)
            return self._wait(full_at, now)

    def _bucket(self, owner: Hashable, now: float) -> tuple[bool, float]:
        """Return whether the owner has, or may have, a bucket of its own, and when that is full."""
        if owner in self._full_at:
            return True, max(self._full_at[owner], now)
        if len(self._full_at) >= self._most_owners:
            self._full_at = {kept: at for kept, at in self._full_at.items() if at > now}
        if len(self._full_at) < self._most_owners:
            return True, now
        return False, max(self._others_full_at, now)

    def _wait(self, full_at: float, now: float) -> float:
        wait = full_at + self._seconds_a_token - now - _PERIOD
        return wait if wait > _ROUNDING else 0.0
