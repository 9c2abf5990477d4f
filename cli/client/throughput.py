"""How fast a batch goes and how long it still takes, from what was seen of it lately."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_WINDOW_SECONDS = 60.0


class Throughput:
    """Estimates from the audits finished within the last minute.

    The whole time would be wrong both for a batch that waited behind others and for one that is
    looked at again hours later.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, finished: int) -> None:
        """Take in how many audits are finished now."""
        now = self._clock()
        self._seen.append((now, finished))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Audits a second, or None before any was seen to finish."""
        if not self._seen:
            return None
        (first, before), (last, now) = self._seen[0], self._seen[-1]
        return (now - before) / (last - first) if now > before and last > first else None

    def seconds_left(self, waiting: int) -> float | None:
        """Return the seconds that `waiting` audits take, or None while that cannot be told."""
        rate = self.rate
        return None if rate is None else waiting / rate
