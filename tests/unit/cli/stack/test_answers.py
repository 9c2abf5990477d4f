"""Parts that are there: processes that are halted, and addresses that take connections for ever."""

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from cli.stack import answers
from cli.stack.answers import unanswered, unreported
from cli.stack.children import ChildState
from cli.stack.observations import NOT_LOOKED, Observation
from cli.stack.run_file import RunningChild, RunningStack
from db.models import WorkerState
from db.workers import LiveWorker

SILENT = "does not answer"


@pytest.fixture
def mute():
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def served():
    """The port of a server that answers HTTP: with what it was given."""

    class Handler(http.server.BaseHTTPRequestHandler):
        status = 200

        def do_GET(self):
            self.send_response(self.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        server.handler = Handler
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def make_stack(tmp_path):
    def make(*names, port=1, state=ChildState.RUNNING, pid=None):
        children = tuple(
            RunningChild(
                name=name, state=state, pid=pid or os.getpid(), created_at=1.0, log=tmp_path / name
            )
            for name in names
        )
        return RunningStack(
            pid=7,
            started_at=datetime.now(UTC),
            home=tmp_path,
            api_url=f"http://127.0.0.1:{port}",
            flower_url=f"http://halldetect:secret@127.0.0.1:{port}",
            database_url=f"postgresql://halldetect:secret@127.0.0.1:{port}/halldetect",
            redis_url=f"redis://:secret@127.0.0.1:{port}/0",
            children=children,
        )

    return make


@pytest.fixture
def halted():
    """The number of a process that SIGSTOP has reached."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    yield process.pid
    process.kill()
    process.communicate()


def test_parts_that_take_connections_and_say_nothing_are_named(make_stack, mute, monkeypatch):
    monkeypatch.setattr(answers, "_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr("db.engine._CONNECT_SECONDS", 2)
    parts = ("postgres", "valkey", "api", "flower", "beat")
    found = unanswered(make_stack(*parts, port=mute), NOT_LOOKED)
    assert found == dict.fromkeys(parts[:-1], SILENT)


def test_parts_that_are_away_are_named_and_a_redis_of_others_too(make_stack):
    found = unanswered(make_stack("postgres", "api"), NOT_LOOKED)
    assert found == dict.fromkeys(("postgres", "api", "redis"), SILENT)


def test_parts_that_do_not_run_yet_are_not_asked(make_stack):
    stack = make_stack("postgres", "valkey", "api", "nli", state=ChildState.STARTING)
    assert unanswered(stack, Observation()) == {}


@pytest.mark.parametrize(("status", "named"), [(200, False), (401, False), (500, True)])
def test_an_answer_of_any_kind_is_one_unless_it_is_a_fault(
    make_stack, served, status, named, monkeypatch
):
    monkeypatch.setattr(answers, "_ANSWER_SECONDS", 60.0)
    served.handler.status = status
    found = unanswered(make_stack("api", "flower", port=served.server_port), NOT_LOOKED)
    assert ("api" in found, "flower" in found) == (named, named)


def test_a_process_that_is_halted_is_named(make_stack, halted):
    stack = make_stack("beat", "valkey", pid=halted)
    found = unanswered(stack, NOT_LOOKED)
    assert set(found) == {"beat", "valkey"}
    assert all("halted" in reason for reason in found.values())


def test_workers_that_run_and_do_not_report_are_named(make_stack, monkeypatch):
    stack = make_stack("api", "nli", "nli-2", "maintenance", "beat")
    silent = dict.fromkeys(("nli", "nli-2", "maintenance"), "does not report")
    assert unreported(stack, Observation()) == silent
    assert unreported(stack, NOT_LOOKED) == unreported(stack, Observation(fault="away")) == {}
    now = datetime.now(UTC)
    worker = LiveWorker(
        "nli@x/1",
        ["nli"],
        os.getpid(),
        socket.gethostname(),
        WorkerState.READY,
        None,
        [],
        now,
        now,
    )
    assert unreported(stack, Observation(workers=(worker,))) == {}
