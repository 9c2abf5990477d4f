"""How many wake-ups Redis took, and how many it did not."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from queues.names import Task

_WAKING = (Task.EXTRACT, Task.VERIFY, Task.RESCORE, Task.DELIVER)


class WakeUpMetrics:
    """Counts wake-ups of this process, by task.

    Parameters
    ----------
    registry : CollectorRegistry
        Where the counts are shown.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sent = Counter(
            "halldetect_wake_ups_sent", "Wake-ups that Redis took.", ["task"], registry=registry
        )
        self._failures = Counter(
            "halldetect_wake_up_failures",
            "Wake-ups that Redis did not take; the sweeper sends others.",
            ["task"],
            registry=registry,
        )
        for task in _WAKING:
            self._sent.labels(task.value)
            self._failures.labels(task.value)

    def sent(self, task: Task) -> None:
        """Note a wake-up that was taken."""
        self._sent.labels(task.value).inc()

    def failed(self, task: Task) -> None:
        """Note a wake-up that was not."""
        self._failures.labels(task.value).inc()
