"""Beat without a maintenance worker: what nobody takes does not pile up for ever."""

from __future__ import annotations

import pytest
from celery.schedules import schedule

from queues.celery_app import make_app
from queues.names import Queue, Task
from worker import steady_beat
from worker.steady_beat import SteadyScheduler


@pytest.fixture
def scheduler(redis_url, tmp_path):
    app = make_app(redis_url, "test")
    app.conf.beat_schedule = {
        task.value: {"task": task.value, "schedule": schedule(3600)}
        for task in (Task.SWEEP, Task.CREATE_PARTITIONS)
    }
    scheduler = SteadyScheduler(app, schedule_filename=str(tmp_path / "schedule"))
    yield scheduler
    scheduler.close()


def test_sweeps_that_nobody_takes_are_bounded_and_the_rest_is_sent(
    scheduler, wake_ups, monkeypatch
):
    monkeypatch.setattr(steady_beat, "_MOST_WAITING", 3)
    for _ in range(5):
        scheduler.apply_entry(scheduler.schedule[Task.SWEEP.value], scheduler.producer)
    assert wake_ups.queued(Queue.MAINTENANCE) == 3
    scheduler.apply_entry(scheduler.schedule[Task.CREATE_PARTITIONS.value], scheduler.producer)
    assert wake_ups.queued(Queue.MAINTENANCE) == 4
