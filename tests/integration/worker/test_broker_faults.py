"""Redis that is full, cut off or emptied, and workers that stop with messages in hand."""

from __future__ import annotations

import signal

import pytest
import redis
from celery_processes import wait_until
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from api.app import create_app
from cli.stack.valkey import ValkeyServer
from db.batches import cancel_batch
from db.line import Stage
from db.models import WorkerState
from halldetect.settings import load_settings
from queues.names import Queue


@pytest.fixture
def valkey(tmp_path):
    """A server of the test's own, which it may fill, stop and start."""
    server = ValkeyServer(tmp_path / "valkey")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(valkey):
    return valkey.url


@pytest.fixture
def broker(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield client


def test_audits_that_were_taken_in_while_redis_was_full_complete_later(
    database, redis_url, broker, start_celery, start_worker, states
):
    start_celery("extraction", "nli")
    here = start_worker("maintenance")
    app = create_app(load_settings(database_url=database, redis_url=redis_url))
    audit = {"source": "The mill opened in 1900.", "response": "It opened in 1900."}
    with TestClient(app, base_url="http://localhost") as api, capture_logs() as logs:
        assert api.post("/v1/audits", json=audit).status_code == 202
        wait_until(lambda: here.sweep() or states() == [("completed", 2, 0)])
        broker.config_set("maxmemory", broker.info("memory")["used_memory"] + 1000)
        answers = [api.post("/v1/audits", json=audit) for _ in range(10)]
        # Workers that take what just fitted in make room: now there is none.
        broker.config_set("maxmemory", 1)
        answers += [api.post("/v1/audits", json=audit) for _ in range(10)]
        # Stored is what was accepted, and nothing else.
        assert [answer.status_code for answer in answers] == [202] * 20
        assert len(states()) == 21
        here.sweep()
        unsent = [entry for entry in logs if entry["event"].startswith("no worker was woken")]
        assert unsent
        assert any("maxmemory" in entry["error"] for entry in unsent)
        failures = 'halldetect_wake_up_failures_total{task="halldetect.extract"}'
        assert f"{failures} 0.0" not in api.get("/metrics").text
        broker.config_set("maxmemory", 0)
        wait_until(lambda: here.sweep() or {status for status, _, _ in states()} == {"completed"})
    assert {faults for _, _, faults in states()} == {0}


@pytest.mark.parametrize("is_emptied", [False, True])
def test_what_is_cancelled_while_no_worker_runs_is_never_worked_on(
    start_celery, submit, wake_ups, sessions, states, broker, is_emptied, start_worker
):
    batch = submit(*[f"The mill opened in {1900 + n}." for n in range(10)])
    submit("Nobody was hurt.", single=True)
    wake_ups.send(Stage.EXTRACTION, batch_id=batch, reason="submitted")
    with sessions.begin() as session:
        cancel_batch(session, batch)
    if is_emptied:
        broker.flushall()
    start_celery("extraction", "nli")
    here = start_worker("maintenance")
    wait_until(lambda: here.sweep() or states()[-1] == ("completed", 2, 0))
    assert states()[:-1] == [("cancelled", 0, 0)] * 10


@pytest.mark.parametrize("fault", ["connections cut", "server restarted"])
def test_workers_go_on_taking_messages_after_their_connections_broke(
    start_celery, submit, wake_ups, states, broker, valkey, fault, worker_rows
):
    workers = start_celery("extraction", "nli")
    wait_until(lambda: worker_rows() == [(WorkerState.READY, None)] * 2)
    for number in range(1, 3):
        # One that cannot send just then would leave the next wake-up to the sweeper.
        wait_until(lambda: all(map(_is_idle, workers)))
        if fault == "connections cut":
            broker.client_kill_filter(_type="normal")
            broker.client_kill_filter(_type="pubsub")
        else:
            valkey.stop()
            valkey.start()
        # No sweeper helps here: what is sent must be taken.
        [audit] = submit(f"The mill opened in {1900 + number}.", single=True)
        wait_until(lambda audit=audit: _is_sent(wake_ups, audit))
        wait_until(lambda number=number: states() == [("completed", 2, 0)] * number)
    assert [worker.process.poll() for worker in workers] == [None, None]


def _is_idle(worker):
    return len(worker.events("woken")) == len(worker.events("run ended"))


def _is_sent(wake_ups, audit):
    try:
        wake_ups.send(Stage.EXTRACTION, audit_id=audit, reason="submitted")
    except Exception:  # the connection of this process was cut, too
        return False
    return True


def test_messages_in_the_hands_of_a_worker_that_stops_are_not_missed(
    start_faulty,
    start_worker,
    submit,
    wake_ups,
    states,
    faults,
    is_waiting,
    worker_rows,
    nothing_is_held,
):
    submit(*[f"The ferry sails at {n}." for n in range(1, 5)])
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    (leaving,) = start_faulty("nli", load_audits=1)
    wait_until(lambda: is_waiting(leaving))
    for _ in range(3):  # one of them is in its hands already, not yet begun
        wake_ups.send(Stage.VERIFICATION, reason="swept")
    leaving.process.send_signal(signal.SIGTERM)
    wait_until(lambda: (WorkerState.STOPPING, None) in worker_rows())
    (faults / "go").touch()
    assert leaving.process.wait() == 0
    assert nothing_is_held()
    start_faulty("nli-2")
    wait_until(lambda: here.sweep() or {status for status, _, _ in states()} == {"completed"})
    assert {faults for _, _, faults in states()} == {0}
    assert wake_ups.queued(Queue.EXTRACTION) == 0
