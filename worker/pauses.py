"""How long a worker waits before it tries again what an outage of Postgres ended."""

from __future__ import annotations

import threading

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0


class OutagePause:
    """Pauses that grow while an outage lasts.

    A database whose disk is full still gives out audits, and refuses their results: without a
    pause the models would run on the same audits over and over.

    Parameters
    ----------
    stopping : Event
        Ends a pause at once: the worker shuts down.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._seconds = 0.0

    def wait(self) -> None:
        """Wait for as long as the last outage asks for; not at all when there is none."""
        self._stopping.wait(self._seconds)

    def note(self, *, is_outage: bool) -> float:
        """Note how a run ended, and return the seconds before the next one."""
        longer = min(max(2 * self._seconds, _FIRST_SECONDS), _LONGEST_SECONDS)
        self._seconds = longer if is_outage else 0.0
        return self._seconds
