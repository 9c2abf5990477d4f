"""Beat's scheduler: it goes on at its interval whatever is done to the clock.

Celery keeps the time of each task's last run by the clock of the machine. Set back by an hour, it
would send nothing for that hour; and a message that expires by the sender's clock would never be
worked on where the clock is a little ahead.
"""

from __future__ import annotations

from typing import Any

from celery.beat import PersistentScheduler

from halldetect.logs import get_logger
from queues.names import Queue, Task
from queues.wake_ups import QueueUnavailable, WakeUps

# Far more than maintenance ever waits for while a worker takes it, and little memory.
_MOST_WAITING = 1000

_log = get_logger(__name__)


class SteadyScheduler(PersistentScheduler):  # type: ignore[misc]  # Celery has no types
    """Celery's own scheduler, which the clock cannot stop and which does not fill the queue."""

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Send what is due, and return the seconds until something else may be."""
        self._follow_the_clock()
        seconds: float = super().tick(*arguments, **options)
        return seconds

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send a task, unless sweeps pile up because no maintenance worker takes them."""
        if entry.task == Task.SWEEP and self._is_overfull():
            _log.warning("no sweep is sent: as many wait as a worker may take", most=_MOST_WAITING)
            return
        super().apply_entry(entry, producer=producer)

    def _follow_the_clock(self) -> None:
        """Forget runs in the future: the clock was set back since."""
        entries = [
            entry for entry in self.schedule.values() if entry.last_run_at > entry.default_now()
        ]
        if not entries:
            return
        _log.warning("the clock was set back", tasks=[entry.task for entry in entries])
        for entry in entries:
            entry.last_run_at = entry.default_now()
        self._heap = None  # is made anew, in the order of the new time

    def _is_overfull(self) -> bool:
        try:
            return WakeUps(self.app).queued(Queue.MAINTENANCE) >= _MOST_WAITING
        except QueueUnavailable:
            return False  # sending says so too, and tries again
