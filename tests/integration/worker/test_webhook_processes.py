"""Deliveries by workers as Celery runs them: woken by a sweep, and killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from receivers import Receiver, answers, in_turn

from db.batches import cancel_batch
from db.webhooks import create_webhook
from queues.celery_app import make_app
from queues.names import Queue, Task

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def start_maintenance(database, redis_url, tmp_path):
    """Start a worker of the queue `maintenance`; return its process and its log."""
    started = []

    def start():
        environment = {
            **{n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")},
            "DATABASE_URL": database,
            "REDIS_URL": redis_url,
            "HALLDETECT_WEBHOOK_ALLOWED_HOSTS": "127.0.0.1",
        }
        log = tmp_path / f"{len(started)}.log"
        command = ["celery", "-A", "worker.app", "worker", "-Q", Queue.MAINTENANCE.value]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *command, "-l", "INFO", "--without-mingle"],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return process, log

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def sweep(redis_url):
    """Ask for a sweep, as beat does."""
    app = make_app(redis_url, "test")
    return lambda: app.send_task(Task.SWEEP.value, queue=Queue.MAINTENANCE.value)


@pytest.fixture
def cancelled_batch(sessions, submit):
    """Store a batch that is finished already, with a webhook at an address; return its id."""

    def store(url):
        with sessions.begin() as session:
            create_webhook(session, url)
        batch_id = submit("The mill opened in 1900.")
        with sessions.begin() as session:
            cancel_batch(session, batch_id)
        return batch_id

    return store


def wait_until(holds):
    while not holds():
        threading.Event().wait(0.05)


def test_a_worker_killed_while_sending_sends_again(start_maintenance, sweep, cancelled_batch, rows):
    worker = None

    def die(connection, request):
        os.kill(worker.pid, signal.SIGKILL)
        connection.recv(1)

    receiver = Receiver(in_turn(die, answers(200)))
    try:
        batch_id = cancelled_batch(receiver.url)
        worker, log = start_maintenance()
        sweep()
        assert worker.wait() == -signal.SIGKILL
        states = "SELECT state, attempts FROM halldetect.webhook_deliveries"
        assert rows(states) == [("due", 1)]
        rows("UPDATE halldetect.webhook_deliveries SET next_attempt_at = now() RETURNING id")
        worker, second_log = start_maintenance()
        sweep()
        wait_until(lambda: rows(states) == [("delivered", 2)])
        first, second = receiver.requests
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        assert json.loads(second.body)["data"]["id"] == str(batch_id)
        worker.terminate()
        assert worker.wait() == 0
    finally:
        receiver.stop()
    text = log.read_text() + second_log.read_text()
    delivered = [json.loads(line) for line in text.splitlines() if '"webhook delivered"' in line]
    assert [(line["batch_id"], line["attempt"]) for line in delivered] == [(batch_id, 2)]
    assert "task_id" in delivered[0]
    assert "token" not in text
