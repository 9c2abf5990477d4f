"""Workers are known by what they report."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from db.leases import recover_expired
from db.models import WorkerState
from db.workers import (
    WorkerCounters,
    end_predecessors,
    forget_lost,
    heartbeat,
    live_workers,
    register,
    unregister,
)


def test_a_worker_reports_and_goes(sessions):
    counters = WorkerCounters(audits=3, busy_seconds=1.5)
    with sessions.begin() as session:
        register(session, "nli@a", queues=["nli"], pid=1, host="a")
        register(session, "both@a", queues=["nli", "extraction"], pid=2, host="a")
        assert heartbeat(
            session,
            "nli@a",
            state=WorkerState.READY,
            error=None,
            models=["m"],
            counters=counters,
        )
        assert [worker.name for worker in live_workers(session)] == ["both@a", "nli@a"]
        assert [w.name for w in live_workers(session, queue="extraction")] == ["both@a"]
        reported = live_workers(session)[1]
        assert (reported.state, reported.models, reported.counters) == ("ready", ["m"], counters)
        unregister(session, "both@a")
        assert [worker.name for worker in live_workers(session)] == ["nli@a"]


def test_a_worker_of_another_version_is_read_whatever_figures_it_reports(sessions):
    with sessions.begin() as session:
        register(session, "nli@a", queues=["nli"], pid=1, host="a")
        session.execute(
            text(
                """
                UPDATE halldetect.workers
                SET counters = '{"audits": 3, "unswept_seconds": 2.5, "of_tomorrow": 7}'
                """
            )
        )
        (worker,) = live_workers(session)
    assert worker.counters == WorkerCounters(audits=3)
    assert worker.unswept_seconds == 2.5


def test_a_silent_worker_is_lost_and_must_register_anew(sessions):
    with sessions.begin() as session:
        register(session, "nli@a", queues=["nli"], pid=1, host="a")
        session.execute(text("UPDATE halldetect.workers SET seen_at = now() - interval '1 hour'"))
        assert live_workers(session) == []
        forget_lost(session)
        assert not heartbeat(
            session,
            "nli@a",
            state=WorkerState.READY,
            error=None,
            models=[],
            counters=WorkerCounters(),
        )


@pytest.mark.parametrize(("runs", "state"), [(False, "queued"), (True, "held")])
def test_a_restarted_worker_frees_what_its_dead_predecessor_held(service, sessions, runs, state):
    service.submit("a")
    with sessions.begin() as session:
        register(session, "nli@a/1", queues=["nli"], pid=11, host="a")
        register(session, "nli@b/1", queues=["nli"], pid=11, host="b")
    service.claim_extraction(owner="nli@a/1")
    with sessions.begin() as session:
        end_predecessors(session, "nli@a/2", host="a", is_running=lambda pid: runs)
        end_predecessors(session, "nli@a/2", host="b", is_running=lambda pid: False)
        end_predecessors(session, "other@a/2", host="a", is_running=lambda pid: False)
        recover_expired(session, 3)
    assert len(service.claim_extraction(owner="nli@a/2")) == (0 if state == "held" else 1)
    with sessions.begin() as session:
        names = [worker.name for worker in live_workers(session)]
    assert names == (["nli@a/1", "nli@b/1"] if runs else ["nli@b/1"])
