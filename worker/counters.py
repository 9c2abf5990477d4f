"""What a worker process has done since it started."""

from __future__ import annotations

import threading
from dataclasses import asdict

from db.workers import WorkerCounters


class Counters:
    """Adds up from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = WorkerCounters()

    def add(self, **amounts: float) -> None:
        """Add to the fields of `WorkerCounters` that are named."""
        with self._lock:
            total = asdict(self._total)
            for name, amount in amounts.items():
                total[name] += amount
            self._total = WorkerCounters(**total)

    def total(self) -> WorkerCounters:
        """Return the sums so far."""
        with self._lock:
            return self._total
