import pytest

from cli.stack.children import ChildState
from cli.stack.supervisor import Supervisor


@pytest.fixture
def changes():
    return []


@pytest.fixture
def supervisor(changes):
    return Supervisor(
        lambda children: changes.append([(child.name, child.state.value) for child in children])
    )


def test_every_change_is_told_once(supervisor, changes, make_child):
    supervisor.add(make_child("exec sleep 60", name=name).plan for name in ("one", "two"))
    assert supervisor.start(["one"]) == []
    while supervisor.states(["one"]) != {ChildState.RUNNING}:
        supervisor.check()
    supervisor.check()
    assert changes == [
        [("one", "waiting"), ("two", "waiting")],
        [("one", "starting"), ("two", "waiting")],
        [("one", "running"), ("two", "waiting")],
    ]
    assert supervisor.states(["one", "two"]) == {ChildState.RUNNING, ChildState.WAITING}
    assert list(supervisor.stop(["one", "two"], is_urgent=bool, tick=lambda: None)) == []
    assert changes[-1] == [("one", "stopped"), ("two", "stopped")]


def test_what_is_urgent_is_killed(supervisor, make_child, tmp_path):
    plan = make_child(
        "trap '' TERM; echo up; while :; do sleep 0.01; done",
        name="stubborn",
        is_ready=lambda _: (tmp_path / "stubborn.log").read_text() != "",
        grace_seconds=3600,
    ).plan
    supervisor.add([plan])
    supervisor.start(["stubborn"])
    while supervisor.states(["stubborn"]) != {ChildState.RUNNING}:
        supervisor.check()
    ticks = []
    said = list(
        supervisor.stop(
            ["stubborn"], is_urgent=lambda: len(ticks) > 1, tick=lambda: ticks.append(1)
        )
    )
    assert said == ["stubborn did not stop in time and was killed"]
