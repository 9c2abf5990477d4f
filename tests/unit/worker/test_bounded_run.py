"""The order of things in a run, with a stage that only takes notes."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from db.engine import DatabaseUnavailable
from db.leases import Lease
from db.line import Stage
from halldetect.settings import Settings
from worker import run as run_module
from worker.counters import Counters
from worker.held_leases import HeldLeases
from worker.metrics import WorkerMetrics
from worker.run import BoundedRun, Ended, ModelBroken, RunTools, WorkInterrupted


class NotedWork:
    """Claims one numbered audit a load; what happens in `process` is set from outside."""

    stage = Stage.VERIFICATION

    def __init__(self, loads, *, looks_ahead=True):
        self.looks_ahead = looks_ahead
        self.notes = []
        self.open = 0
        self.most_open = 0
        self.during = {}
        self.during_write = {}
        self.suspects = set()
        self._left = list(range(1, loads + 1))
        self._changed = threading.Condition()

    def claim(self, session):
        if not self._left:
            return []
        number = self._left.pop(0)
        if number in self.during.get("claim", ()):
            raise DatabaseUnavailable("gone")
        self.note("claim", number)
        with self._changed:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        lease = Lease(number, "worker", 1)
        is_suspect = number in self.suspects
        return [SimpleNamespace(lease=lease, waited_seconds=None, worker_lost=is_suspect)]

    def prepare(self, claimed):
        return claimed[0].lease

    def process(self, lease):
        self.tools.held.begin(lease)
        if lease.audit_id in self.during:
            self.during[lease.audit_id]()
        with self._changed:
            self.open -= 1
        self.note("process", lease.audit_id)
        return lambda: self._write(lease)

    def _write(self, lease):
        if lease.audit_id in self.during_write:
            self.during_write[lease.audit_id]()
        self.note("write", lease.audit_id)
        self.tools.held.drop(lease)
        return 1

    def note(self, what, number):
        with self._changed:
            self.notes.append((what, number))
            self._changed.notify_all()

    def wait_for(self, what, number):
        with self._changed:
            assert self._changed.wait_for(lambda: (what, number) in self.notes, timeout=30)

    def noted(self, what):
        return [number for noted, number in self.notes if noted == what]


class Wakes:
    def __init__(self):
        self.sent = []

    def wake(self, stage, reason):
        self.sent.append((stage, reason))


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(run_module.time, "monotonic", lambda: now[0])
    return now


def start(work, run_seconds=30):
    work.tools = RunTools(
        settings=Settings(run_seconds=run_seconds),
        owner="worker",
        sessions=SimpleNamespace(begin=nullcontext),
        held=HeldLeases(),
        outcomes=None,
        waker=Wakes(),
        counters=Counters(),
        metrics=WorkerMetrics(Counters()),
        stopping=threading.Event(),
    )
    return BoundedRun(work, work.tools)


def test_every_load_is_processed_and_written_in_order(clock):
    work = NotedWork(5)
    summary = start(work).run()
    assert (summary.loads, summary.audits, summary.ended) == (5, 5, Ended.NOTHING_LEFT)
    for what in ("claim", "process", "write"):
        assert work.noted(what) == [1, 2, 3, 4, 5]
    assert work.tools.held.remaining() == []


def test_every_claim_may_wake_another_worker(clock):
    work = NotedWork(3)
    start(work).run()
    assert work.tools.waker.sent == [(Stage.VERIFICATION, "more waits")] * 3


def test_nothing_waits_so_nothing_is_done(clock):
    work = NotedWork(0)
    summary = start(work).run()
    assert (summary.loads, summary.audits, summary.ended) == (0, 0, Ended.NOTHING_LEFT)
    assert work.tools.waker.sent == []


def test_exactly_one_load_is_claimed_ahead_while_the_model_runs(clock):
    work = NotedWork(6)
    for number in range(1, 6):  # the model runs until the next load is claimed
        work.during[number] = lambda number=number: work.wait_for("claim", number + 1)
    start(work).run()
    assert work.noted("process") == [1, 2, 3, 4, 5, 6]
    assert work.most_open == 2


def test_a_stage_that_does_not_look_ahead_holds_one_load(clock):
    work = NotedWork(4, looks_ahead=False)
    summary = start(work).run()
    assert work.most_open == 1
    assert summary.audits == 4


def test_results_are_written_while_the_model_runs_the_next_load(clock):
    work = NotedWork(2)
    work.during[2] = lambda: work.note("run", 2)
    work.during_write[1] = lambda: work.wait_for("run", 2)
    assert start(work).run().audits == 2
    assert work.noted("write") == [1, 2]


@pytest.mark.parametrize("suspect", [2, 3])
def test_nothing_is_unwritten_while_a_suspect_runs_or_is_written(clock, suspect):
    work = NotedWork(4)
    work.suspects = {suspect}
    written = threading.Event()
    # Written only when the next load would run already, if it did not wait.
    work.during_write[2] = lambda: written.wait(timeout=1)
    work.during[3] = lambda: work.note("run", 3)
    start(work).run()
    assert work.notes.index(("write", 2)) < work.notes.index(("run", 3))


def test_after_its_time_a_run_begins_nothing_and_keeps_what_it_claimed_ahead(clock):
    work = NotedWork(5)

    def take_long():
        work.wait_for("claim", 3)
        clock[0] = 31.0

    work.during[2] = take_long
    summary = start(work).run()
    assert (summary.loads, summary.ended) == (2, Ended.TIME_IS_UP)
    assert work.noted("write") == [1, 2]
    assert work.tools.held.by_progress() == {True: [], False: [Lease(3, "worker", 1)]}


def test_the_first_load_is_done_however_late_it_is(clock):
    work = NotedWork(2)
    run = start(work)
    clock[0] = 100.0
    summary = run.run()
    assert (summary.loads, summary.audits, summary.ended) == (1, 1, Ended.TIME_IS_UP)
    assert work.noted("claim") == [1]


def test_a_shutdown_begins_nothing_new(clock):
    work = NotedWork(5)
    run = start(work)
    work.during[2] = work.tools.stopping.set
    summary = run.run()
    assert (summary.loads, summary.ended) == (2, Ended.STOPPING)
    assert work.noted("write") == [1, 2]
    assert work.tools.held.by_progress()[True] == []


def test_a_load_that_is_given_up_stays_held_and_the_run_goes_on(clock):
    work = NotedWork(3)

    def give_up():
        raise WorkInterrupted

    work.during[2] = give_up
    summary = start(work).run()
    assert (summary.audits, summary.ended) == (2, Ended.NOTHING_LEFT)
    assert work.tools.held.by_progress()[True] == [Lease(2, "worker", 1)]


@pytest.mark.parametrize("place", ["claim", "process", "write"])
def test_without_a_database_the_run_ends_and_everything_unwritten_stays_held(clock, place):
    work = NotedWork(2)

    def lose():
        raise DatabaseUnavailable("connection refused")

    if place == "claim":
        work.during["claim"] = (2,)
    else:
        (work.during if place == "process" else work.during_write)[2] = lose
    summary = start(work).run()
    assert summary.ended is Ended.NO_DATABASE
    assert summary.error in ("gone", "connection refused")
    held = work.tools.held.by_progress()
    assert held == {True: [] if place == "claim" else [Lease(2, "worker", 1)], False: []}


def test_a_broken_model_ends_the_run_and_its_audits_count_as_lost(clock):
    work = NotedWork(3)

    def break_down():
        work.wait_for("claim", 3)
        raise ModelBroken("the device is gone")

    work.during[2] = break_down
    summary = start(work).run()
    assert (summary.ended, summary.error) == (Ended.MODEL_BROKEN, "the device is gone")
    assert work.tools.held.by_progress() == {True: [], False: [Lease(3, "worker", 1)]}
