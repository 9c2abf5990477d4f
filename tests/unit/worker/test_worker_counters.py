from __future__ import annotations

import threading

from db.workers import WorkerCounters
from worker.counters import Counters


def test_amounts_of_several_threads_add_up():
    counters = Counters()

    def add():
        for _ in range(500):
            counters.add(pairs=2, busy_seconds=0.5)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.total() == WorkerCounters(pairs=4_000, busy_seconds=1_000.0)
