"""An audit that kills each process that works on it, under the supervisor that restarts them."""

from __future__ import annotations

import json
import socket
import sys
import threading

import pytest
import uvicorn
from celery_processes import ROOT, wait_until, worker_environment
from structlog.testing import capture_logs
from typer.testing import CliRunner

from api.app import create_app
from cli.main import app
from cli.stack.children import ChildPlan
from cli.stack.spawning import spawn
from cli.stack.supervisor import Supervisor
from db.line import Stage
from halldetect.settings import Settings


@pytest.fixture
def halldetect(database, redis_url, monkeypatch):
    """Return a function that runs a command of `halldetect` against an API."""
    settings = Settings(database_url=database, redis_url=redis_url)
    config = uvicorn.Config(create_app(settings), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    monkeypatch.setenv("HALLDETECT_API_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
    with capture_logs():
        thread.start()
        yield lambda *arguments: CliRunner().invoke(app, arguments)
        server.should_exit = True
        thread.join()
    listener.close()


@pytest.fixture
def supervised(database, redis_url, faults, tmp_path):
    """Keep an NLI worker running, as `halldetect up` does, and return how often it was started."""
    environment = worker_environment(database, redis_url)
    environment["FAULTS_FOLDER"] = str(faults)
    celery = ["-m", "celery", "-A", "faulty_worker", "worker", "-Q", "nli", "-n", "nli@%h"]
    launches = []

    def launch():
        launches.append(True)
        log = tmp_path / "nli.log"
        return spawn([sys.executable, *celery], log=log, environment=environment, folder=ROOT)

    plan = ChildPlan("nli", launch, lambda pid: True, tmp_path / "nli.log", grace_seconds=60)
    supervisor = Supervisor(lambda children: None)
    supervisor.add([plan])
    supervisor.start(["nli"])
    ending = threading.Event()

    def watch():
        while not ending.wait(0.1):
            supervisor.check()

    watching = threading.Thread(target=watch)
    watching.start()
    yield launches
    ending.set()
    watching.join()
    for _ in supervisor.stop(["nli"], is_urgent=lambda: True, tick=lambda: None):
        pass


def test_a_poison_audit_is_failed_listed_and_can_be_tried_again(
    start_worker, submit, rows, states, faults, supervised, halldetect
):
    (faults / "deadly").touch()
    batch = submit("The mill opened in 1900.", "A heron saw it.", "Nobody was hurt.")
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    ends = ("completed", "failed")
    wait_until(lambda: here.sweep() or all(status in ends for status, _, _ in states()))
    assert [status for status, _, _ in states()] == ["completed", "failed", "completed"]
    [(faults_charged, error)] = rows("SELECT faults, error FROM halldetect.audits WHERE line = 2")
    assert faults_charged == 3
    assert "its worker was lost 3 times" in error
    # Its neighbours were taken along once at most: from then on it ran alone.
    assert max(charged for status, _, charged in states() if status == "completed") <= 1
    # No loop of restarts: the worker that came after the third loss stays.
    before = len(supervised)
    assert before <= 4
    [listed] = halldetect("failed", "--batch", str(batch), "--json").stdout.splitlines()
    assert json.loads(listed)["custom_id"] == "r2"
    assert json.loads(listed)["error"] == error
    (faults / "deadly").unlink()
    assert halldetect("retry", json.loads(listed)["id"]).exit_code == 0
    wait_until(lambda: here.sweep() or [status for status, _, _ in states()] == ["completed"] * 3)
    assert len(supervised) <= 4
    assert halldetect("failed", "--json").stdout == ""
