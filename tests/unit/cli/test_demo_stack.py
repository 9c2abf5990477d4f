import sys
from pathlib import Path

import pytest

from cli import demo_stack as module
from cli.demo_stack import demo_home, demo_stack
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.lock import is_locked
from db.models import WorkerState
from halldetect.errors import ModelError
from halldetect.settings import ExtractorBackend, Settings

# As much of `halldetect up` as the demo sees: it holds the lock and keeps the run file.
STACK = """
import json, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from cli.stack.home import Home
from cli.stack.lock import exclusive_lock
from cli.stack.run_file import RunningChild, RunningStack, write_run_file
home = Home(Path(os.environ["HALLDETECT_HOME"]))
names = sorted(name for name in os.environ if name.endswith(("_URL", "_API_HOST", "_METRICS_HOST")))
(home.root / "seen.json").write_text(json.dumps([names, os.environ["HALLDETECT_EXTRACTOR"]]))
child = lambda name: RunningChild(
    name=name, state=sys.argv[1], pid=os.getpid(), created_at=None, log=home.root / "log"
)
with exclusive_lock(home.lock_file):
    write_run_file(RunningStack(
        pid=os.getpid(), started_at=datetime.now(UTC), home=home.root, api_url="a", flower_url="f",
        database_url="d", redis_url="r", children=[child("postgres"), child("nli-2")],
    ))
    signal.sigwait({signal.SIGTERM})
    home.run_file.unlink()
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(module.__file__).resolve().parents[1]))
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.01)
    return tmp_path / "demo"


@pytest.fixture
def children(monkeypatch):
    """Lets the double of `halldetect up` say what its children do."""

    def do(state):
        # The signal is waited for, so it must not end the process before.
        program = "import signal; signal.pthread_sigmask(0, {signal.SIGTERM})\n" + STACK
        monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-c", program, state))

    return do


@pytest.fixture
def worker(monkeypatch):
    """Decides what the database says of every worker."""

    def report(state, error=None):
        class Observation:
            def worker(self, pid):
                return type("Worker", (), {"state": state, "error": error})

        monkeypatch.setattr(module, "observe", lambda url: Observation())

    return report


def test_the_demo_keeps_out_of_the_users_home(tmp_path):
    assert demo_home(Settings(home=tmp_path / "mine")) == tmp_path / "mine-demo"
    assert demo_home(Settings(home="~/x")) == Path("~/x-demo").expanduser()


def test_it_starts_with_its_own_servers_and_stops_at_the_end(home, children, monkeypatch):
    for name in ("DATABASE_URL", "HALLDETECT_REDIS_URL", "HALLDETECT_API_URL"):
        monkeypatch.setenv(name, "postgresql://production")
    for name in ("HALLDETECT_API_HOST", "HALLDETECT_METRICS_HOST"):
        monkeypatch.setenv(name, "0.0.0.0")
    children("running")
    with demo_stack(home, ExtractorBackend.LLAMA) as stack:
        assert stack.is_ours
        assert stack.running.api_url == "a"
        assert (home / "seen.json").read_text() == '[[], "llama"]'
        assert is_locked(Home(home).lock_file)
    assert not is_locked(Home(home).lock_file)


def test_one_that_runs_already_is_used_and_left_alone(home, children):
    children("running")
    with demo_stack(home, ExtractorBackend.SENTENCES) as first:
        with demo_stack(home, ExtractorBackend.SENTENCES) as second:
            assert not second.is_ours
            assert second.running == first.running
        assert is_locked(Home(home).lock_file)


def test_it_stops_also_when_the_demo_fails(home, children):
    children("running")
    with pytest.raises(KeyboardInterrupt), demo_stack(home, ExtractorBackend.SENTENCES):
        raise KeyboardInterrupt
    assert not is_locked(Home(home).lock_file)


def test_a_stack_that_cannot_start_is_told_with_the_end_of_its_log(home, monkeypatch):
    program = "print('no Postgres here'); raise SystemExit(4)"
    monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-c", program))
    with (
        pytest.raises(StackError, match="no Postgres here"),
        demo_stack(home, ExtractorBackend.SENTENCES),
    ):
        pass


def test_a_worker_without_its_model_ends_the_wait(home, children, worker):
    children("starting")
    worker(WorkerState.FAILED, "x.gguf: there is no such file")
    with (
        pytest.raises(ModelError, match=r"x\.gguf: there is no such file"),
        demo_stack(home, ExtractorBackend.LLAMA),
    ):
        pass
    assert not is_locked(Home(home).lock_file)


def test_a_start_that_takes_too_long_is_given_up(home, children, worker, monkeypatch):
    monkeypatch.setattr(module, "_START_SECONDS", 1.0)
    children("starting")
    worker(WorkerState.LOADING)
    with (
        pytest.raises(StackError, match="not ready after 1 s"),
        demo_stack(home, ExtractorBackend.SENTENCES),
    ):
        pass
    assert not is_locked(Home(home).lock_file)
