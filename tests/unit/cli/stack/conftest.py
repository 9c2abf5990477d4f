"""Children that are real processes, cheap ones, under a clock that the test moves."""

import signal
import sys
import time

import pytest

from cli.stack.children import Child, ChildPlan, ChildState
from cli.stack.spawning import spawn


@pytest.fixture
def make_child(tmp_path, clock):
    """Makes children that run a line of shell; what still runs at the end is killed."""
    children = []

    def make(shell, *, name="child", is_ready=lambda pid: True, **plan):
        log = tmp_path / f"{name}.log"
        child = Child(
            ChildPlan(
                name=name,
                launch=lambda: spawn(["sh", "-c", shell], log=log),
                is_ready=is_ready,
                log=log,
                **plan,
            ),
            clock,
        )
        children.append(child)
        return child

    yield make
    for child in children:
        if child.pid is not None:
            child.plan = ChildPlan("", None, None, child.plan.log, signal.SIGKILL)
            child.ask_to_stop()
            check_until(child, ChildState.STOPPED)


@pytest.fixture
def until():
    return check_until


def check_until(child, state):
    """Check a child until it is in `state`; return all that it said."""
    said = []
    give_up_at = time.monotonic() + 120
    while time.monotonic() < give_up_at:
        message = child.check()
        if message is not None:
            said.append(message)
        if child.state is state:
            return said
        time.sleep(0.01)
    sys.exit(f"{child.name} is {child.state} and not {state}; it said {said}")
