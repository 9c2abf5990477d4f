import pytest

from cli.stack.children import Child, ChildState
from cli.stack.supervisor import Supervisor


@pytest.fixture
def changes():
    return []


@pytest.fixture
def supervisor(changes):
    return Supervisor(
        lambda children: changes.append([(child.name, child.state.value) for child in children])
    )


def test_every_change_is_told_once(supervisor, changes, make_child, until):
    for name in ("one", "two"):
        supervisor.add(make_child("exec sleep 60", name=name).plan)
    while any(child.state is not ChildState.RUNNING for child in supervisor.children):
        supervisor.check()
    supervisor.check()
    assert changes[0] == [("one", "starting")]
    assert changes[-1] == [("one", "running"), ("two", "running")]
    assert len(changes) == len({str(change) for change in changes})
    assert list(supervisor.stop(["one"], is_urgent=bool, tick=lambda: None)) == []
    assert changes[-1] == [("one", "stopped"), ("two", "running")]
    assert list(supervisor.stop(["two"], is_urgent=bool, tick=lambda: None)) == []


def test_what_is_urgent_is_killed(supervisor, make_child, tmp_path):
    plan = make_child(
        "trap '' TERM; echo up; while :; do sleep 0.01; done",
        name="stubborn",
        is_ready=lambda _: (tmp_path / "stubborn.log").read_text() != "",
        grace_seconds=3600,
    ).plan
    supervisor.add(plan)
    [child] = supervisor.children
    assert isinstance(child, Child)
    while child.state is not ChildState.RUNNING:
        supervisor.check()
    ticks = []
    said = list(
        supervisor.stop(
            ["stubborn"], is_urgent=lambda: len(ticks) > 1, tick=lambda: ticks.append(1)
        )
    )
    assert said == ["stubborn did not stop in time and was killed"]
