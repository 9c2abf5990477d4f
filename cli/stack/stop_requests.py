"""Ctrl-C, SIGTERM and a closed terminal as requests to stop, counted and acted on in due course."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_REQUEST_SECONDS = 1.0


class StopRequests:
    """Whether somebody asked to stop, and whether they asked again because it takes too long.

    Parameters
    ----------
    clock : callable
        Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: float | None = None
        self._last = 0.0

    @property
    def is_made(self) -> bool:
        """Whether anybody asked."""
        return self._first is not None

    @property
    def is_urgent(self) -> bool:
        """Whether somebody asked again, and not just a parent that passed the same signal on."""
        return self._first is not None and self._last - self._first > _SAME_REQUEST_SECONDS

    def note(self, number: int, frame: FrameType | None) -> None:
        """Take note of one request; a signal handler."""
        self._last = self._clock()
        if self._first is None:
            self._first = self._last


@contextmanager
def stop_requests() -> Iterator[StopRequests]:
    """Count the signals that ask to stop, instead of obeying them at once."""
    requests = StopRequests()
    before = {number: signal.signal(number, requests.note) for number in _SIGNALS}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
