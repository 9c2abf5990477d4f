import stat
from datetime import UTC, datetime

import pytest

from cli.stack.children import ChildState
from cli.stack.home import Home
from cli.stack.lock import exclusive_lock, is_locked
from cli.stack.run_file import RunningChild, RunningStack, read_running_stack, write_run_file


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.create()
    return home


def stack_in(home, *states):
    return RunningStack(
        pid=7,
        started_at=datetime.now(UTC),
        home=home.root,
        api_url="http://127.0.0.1:8000",
        flower_url="http://halldetect:secret@127.0.0.1:5555",
        database_url="postgresql://halldetect:secret@127.0.0.1:15432/halldetect",
        redis_url="redis://:secret@127.0.0.1:16379/0",
        children=tuple(
            RunningChild(name="api", state=state, pid=8, created_at=1.5, log=home.logs / "api.log")
            for state in states
        ),
    )


def test_what_was_written_is_read_while_the_stack_lives(home):
    stack = stack_in(home, ChildState.RUNNING)
    with exclusive_lock(home.lock_file) as is_ours:
        assert is_ours
        write_run_file(stack)
        assert read_running_stack(home.root) == stack


def test_the_record_is_for_its_owner_alone(home):
    write_run_file(stack_in(home))
    assert stat.S_IMODE(home.run_file.stat().st_mode) == 0o600


def test_a_record_that_a_killed_stack_left_is_no_running_stack(home):
    write_run_file(stack_in(home))
    assert read_running_stack(home.root) is None


def test_no_stack_runs_where_there_is_no_home(tmp_path):
    assert read_running_stack(tmp_path / "nowhere") is None


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"pid": 1}'])
def test_a_record_of_another_version_is_no_stack(home, content):
    with exclusive_lock(home.lock_file):
        home.run_file.write_bytes(content)
        assert read_running_stack(home.root) is None


def test_only_one_holds_the_lock(home):
    with exclusive_lock(home.lock_file) as first, exclusive_lock(home.lock_file) as second:
        assert (first, second) == (True, False)
        assert is_locked(home.lock_file)
    assert not is_locked(home.lock_file)
    with exclusive_lock(home.lock_file) as again:
        assert again


@pytest.mark.parametrize(
    ("states", "ready"),
    [
        ([], False),
        ([ChildState.RUNNING], True),
        ([ChildState.RUNNING, ChildState.STARTING], False),
        ([ChildState.RUNNING, ChildState.RESTARTING], False),
    ],
)
def test_a_stack_is_ready_when_all_of_it_runs(home, states, ready):
    assert stack_in(home, *states).is_ready is ready
