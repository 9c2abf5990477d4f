import signal
import time
from contextlib import suppress

import psutil
import pytest

from cli.stack.children import ChildState
from cli.stack.errors import StackError


def test_a_child_is_ready_when_its_check_says_so(make_child, clock):
    ready = []
    child = make_child("exec sleep 60", is_ready=ready.__contains__)
    assert child.start() is None
    assert child.check() is None
    assert child.state is ChildState.STARTING
    ready.append(child.pid)
    clock.now += 2.5
    assert child.check() == "child is ready after 2.5 s"
    assert child.state is ChildState.RUNNING
    assert child.check() is None


def test_a_child_that_cannot_start_shows_the_end_of_its_log(make_child, until, clock):
    child = make_child("echo one; echo 'no such module' >&2; exit 3", is_ready=lambda _: False)
    child.start()
    [said] = until(child, ChildState.RESTARTING)
    assert said.startswith("child ended with code 3 while starting\n    one\n    no such module\n")
    assert said.endswith("child is started again in 1 s")
    assert child.pid is None


def test_only_what_this_attempt_wrote_is_shown(make_child, until, clock, tmp_path):
    (tmp_path / "child.log").write_text("of long ago\n")
    child = make_child("echo of now; exit 1", is_ready=lambda _: False)
    child.start()
    [said] = until(child, ChildState.RESTARTING)
    assert "of now" in said
    assert "of long ago" not in said


def test_control_characters_of_a_log_do_not_reach_the_terminal(make_child, until):
    child = make_child(r"printf '\033[31mred\n'; exit 1", is_ready=lambda _: False)
    child.start()
    [said] = until(child, ChildState.RESTARTING)
    assert "\x1b" not in said
    assert r"\x1b[31mred" in said


def test_a_child_that_dies_is_started_again_after_its_pause(make_child, until, clock):
    child = make_child("exec sleep 60")
    child.start()
    until(child, ChildState.RUNNING)
    first = child.pid
    psutil.Process(first).kill()
    [said] = until(child, ChildState.RESTARTING)
    assert said.startswith("child was ended by SIGKILL unexpectedly")
    assert child.check() is None  # not yet
    clock.now += 1
    until(child, ChildState.RUNNING)
    assert child.pid not in (None, first)


def test_pauses_grow_to_half_a_minute_and_repeated_reasons_are_not_repeated(
    make_child, until, clock
):
    child = make_child("exit 1", is_ready=lambda _: False)
    child.start()
    said = []
    for _ in range(7):
        said += until(child, ChildState.RESTARTING)
        clock.now += 30
        child.check()
    pauses = [message.rsplit(" in ", 1)[1] for message in said]
    assert pauses == ["1 s", "2 s", "4 s", "8 s", "16 s", "30 s", "30 s"]
    assert said[1] == "child ended the same way once more; child is started again in 2 s"


def test_a_child_that_ran_well_for_a_minute_has_a_short_pause_again(make_child, until, clock):
    child = make_child("exec sleep 60")
    child.start()
    for seconds, pause in [(1, "1 s"), (1, "2 s"), (60, "1 s")]:
        until(child, ChildState.RUNNING)
        clock.now += seconds
        psutil.Process(child.pid).kill()
        [said] = until(child, ChildState.RESTARTING)
        assert said.endswith(f"in {pause}")
        clock.now += 30
        child.check()


def test_what_comes_before_a_start_comes_before_each(make_child, until, clock):
    said = iter(["another port", None])
    child = make_child("exit 1", is_ready=lambda _: False, before_launch=lambda: next(said))
    assert child.start() == "another port"
    until(child, ChildState.RESTARTING)
    clock.now += 1
    assert child.check() is None
    assert next(said, "asked twice") == "asked twice"


def test_a_program_that_is_not_there_is_tried_again(make_child, until, clock):
    child = make_child("exec sleep 60")
    launch = child.plan.launch

    def fail():
        raise StackError("no such program")

    object.__setattr__(child.plan, "launch", fail)
    assert child.start() == "no such program\n    child is started again in 1 s"
    object.__setattr__(child.plan, "launch", launch)
    clock.now += 1
    until(child, ChildState.RUNNING)


def test_a_child_stops_when_asked(make_child, until):
    child = make_child("exec sleep 60")
    child.start()
    until(child, ChildState.RUNNING)
    pid = child.pid
    child.ask_to_stop()
    assert until(child, ChildState.STOPPED) == []
    assert child.pid is None
    assert not psutil.pid_exists(pid)


def test_the_signal_to_stop_is_the_plans(make_child, until, tmp_path):
    child = make_child(
        "trap 'echo INT; exit 0' INT; echo up; while :; do sleep 0.01; done",
        is_ready=lambda _: (tmp_path / "child.log").read_text() == "up\n",
        stop_signal=signal.SIGINT,
    )
    child.start()
    until(child, ChildState.RUNNING)
    child.ask_to_stop()
    until(child, ChildState.STOPPED)
    assert (tmp_path / "child.log").read_text() == "up\nINT\n"


@pytest.mark.parametrize("in_a_hurry", [False, True])
def test_a_child_that_does_not_stop_is_killed_with_what_it_started(
    make_child, until, clock, tmp_path, in_a_hurry
):
    child = make_child(
        "trap '' TERM; (trap '' TERM; exec sleep 60) & echo $!; wait",
        is_ready=lambda _: (tmp_path / "child.log").read_text() != "",
        grace_seconds=5,
    )
    child.start()
    until(child, ChildState.RUNNING)
    grandchild = psutil.Process(int((tmp_path / "child.log").read_text()))
    child.ask_to_stop()
    assert child.check() is None
    assert child.state is ChildState.STOPPING
    if in_a_hurry:
        child.hurry()
    else:
        clock.now += 5
    assert until(child, ChildState.STOPPED) == ["child did not stop in time and was killed"]
    # The signal has been sent; the system ends the process when it gets to it.
    with suppress(psutil.NoSuchProcess):
        while grandchild.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def test_a_child_that_waits_to_be_started_again_is_stopped_at_once(make_child, until, clock):
    child = make_child("exit 1", is_ready=lambda _: False)
    child.start()
    until(child, ChildState.RESTARTING)
    child.ask_to_stop()
    assert child.state is ChildState.STOPPED
    clock.now += 100
    assert child.check() is None
