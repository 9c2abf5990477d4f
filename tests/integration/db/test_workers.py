"""Workers are known by what they report."""

from __future__ import annotations

from sqlalchemy import text

from db.models import WorkerState
from db.workers import (
    WorkerCounters,
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
