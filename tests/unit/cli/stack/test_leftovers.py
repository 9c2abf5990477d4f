import subprocess
from datetime import UTC, datetime

import psutil
import pytest

from cli.stack.children import ChildState
from cli.stack.home import Home
from cli.stack.leftovers import stop_leftovers
from cli.stack.run_file import RunningChild, RunningStack, write_run_file


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.create()
    return home


@pytest.fixture
def process():
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def record(home, **children):
    listed = tuple(
        RunningChild(
            name=name, state=ChildState.RUNNING, pid=pid, created_at=moment, log=home.logs / name
        )
        for name, (pid, moment) in children.items()
    )
    write_run_file(
        RunningStack(
            pid=1,
            started_at=datetime.now(UTC),
            home=home.root,
            api_url="",
            flower_url="",
            database_url="",
            redis_url="",
            children=listed,
        )
    )


def test_what_a_killed_stack_left_is_stopped(home, process):
    record(home, nli=(process.pid, psutil.Process(process.pid).create_time()))
    assert stop_leftovers(home.root) == ["nli"]
    assert process.wait(10) is not None


def test_a_process_that_got_the_number_later_is_left_alone(home, process):
    record(home, nli=(process.pid, psutil.Process(process.pid).create_time() - 3600))
    assert stop_leftovers(home.root) == []
    assert process.poll() is None


def test_processes_that_have_ended_are_no_leftovers(home):
    with subprocess.Popen(["true"]) as ended:
        moment = psutil.Process(ended.pid).create_time()
        ended.wait()
    record(home, nli=(ended.pid, moment), api=(None, None))
    assert stop_leftovers(home.root) == []


def test_without_a_record_there_is_nothing_to_stop(home):
    assert stop_leftovers(home.root) == []


def test_servers_are_stopped_after_those_that_use_them(home, monkeypatch):
    stopped = []
    monkeypatch.setattr(
        "cli.stack.leftovers._stop", lambda group: stopped.append([c.name for c, _ in group])
    )
    monkeypatch.setattr("cli.stack.leftovers._process", lambda child: child.pid)
    record(home, postgres=(1, 1.0), valkey=(2, 1.0), nli=(3, 1.0), api=(4, 1.0))
    assert stop_leftovers(home.root) == ["postgres", "valkey", "nli", "api"]
    assert stopped == [["nli", "api"], ["postgres", "valkey"]]
