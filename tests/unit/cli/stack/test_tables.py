from datetime import UTC, datetime

import pytest
from rich.console import Console

from cli.stack.children import ChildState
from cli.stack.observations import NOT_LOOKED, Observation
from cli.stack.run_file import RunningChild, RunningStack
from cli.stack.screen import PlainLines
from cli.stack.tables import address_lines, addresses, numbers, service_tables, stack_tables
from db.line import Stage
from db.models import WorkerState
from db.queue_depth import QueueDepth
from db.workers import LiveWorker, WorkerCounters


@pytest.fixture
def stack(tmp_path):
    child = RunningChild(
        name="nli", state=ChildState.RUNNING, pid=42, created_at=1.0, log=tmp_path / "nli.log"
    )
    return RunningStack(
        pid=7,
        started_at=datetime.now(UTC),
        home=tmp_path,
        api_url="http://127.0.0.1:8000",
        flower_url="http://halldetect:flowersecret@127.0.0.1:5555",
        database_url="postgresql://halldetect:dbsecret@127.0.0.1:15432/halldetect",
        redis_url="redis://:redissecret@127.0.0.1:16379/0",
        children=(child,),
    )


def worker(host, *, state=WorkerState.READY, error=None, models=("nli-minilm/model.onnx",)):
    now = datetime.now(UTC)
    return LiveWorker(
        name="nli@x/1",
        queues=["nli"],
        pid=42,
        host=host,
        state=state,
        error=error,
        models=list(models),
        started_at=now,
        seen_at=now,
        counters=WorkerCounters(audits=1234),
    )


def busy(*workers):
    depths = (
        QueueDepth(Stage.EXTRACTION, 1200, 8, 61.4),
        QueueDepth(Stage.VERIFICATION, 0, 64, None),
    )
    held = {"nli@x/1": 64}
    return Observation(depths=depths, audits_per_second=2.346, workers=workers, held=held)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    return "here"


@pytest.fixture
def shown():
    def show(stack, observation, silent=None):
        console = Console(width=140, color_system=None)
        with console.capture() as capture:
            console.print(stack_tables(stack, observation, silent or {}))
        return capture.get()

    return show


def test_a_worker_shows_its_models_and_what_it_did(stack, here, shown):
    text = shown(stack, busy(worker(here)))
    assert "nli-minilm/model.onnx · 1,234 audits" in text
    assert "claims to be extracted" in text
    assert "1,200" in text
    assert "61 s" in text
    assert "2.35 audits/s over the last minute" in text


def row_of(text, word):
    (line,) = [line for line in text.splitlines() if word in line.split()]
    return line.split()


def test_a_process_of_the_same_number_on_another_machine_is_somebody_else(stack, here, shown):
    text = shown(stack, busy(worker("elsewhere", state=WorkerState.STOPPING)))
    assert row_of(text, "42") == ["nli", "running", "42"]
    assert row_of(text, "elsewhere")[:5] == ["nli@x", "elsewhere", "nli", "stopping", "64"]


def test_workers_of_the_stack_itself_are_shown_once(stack, here, shown):
    assert shown(stack, busy(worker(here))).count("minilm") == 1


def test_a_service_of_other_processes_shows_its_workers_and_lines(here):
    console = Console(width=140, color_system=None)
    with console.capture() as capture:
        console.print(service_tables(busy(worker(here), worker("elsewhere")), {"redis": "is away"}))
    text = capture.get()
    assert row_of(text, "here")[:5] == ["nli@x", "here", "nli", "ready", "64"]
    assert row_of(text, "elsewhere")[-3:] == ["·", "1,234", "audits"]
    assert "claims to be extracted" in text
    assert "redis is away" in text


def test_a_part_that_does_nothing_is_not_shown_as_running(stack, here, shown):
    text = shown(stack, busy(), {"nli": "sulks", "redis": "is away"})
    assert row_of(text, "42") == ["nli", "sulks", "42"]
    assert "redis is away" in text
    assert "running" not in row_of(text, "42")


def test_a_worker_without_its_model_says_why(stack, here, shown):
    fault = worker(here, state=WorkerState.FAILED, error="no file\x1b[2J", models=())
    text = shown(stack, busy(fault))
    assert r"failed: no file\x1b[2J" in text
    assert "\x1b" not in text


def test_without_numbers_the_reason_is_shown(stack, shown):
    text = shown(stack, Observation(fault="the database cannot be used: refused"))
    assert "the database cannot be used: refused" in text


def test_servers_are_shown_without_passwords_and_flower_with_its_own(stack, shown):
    text = shown(stack, busy())
    assert "dbsecret" not in text
    assert "redissecret" not in text
    assert "http://halldetect:flowersecret@127.0.0.1:5555" in text
    assert dict(addresses(stack))["API"] == "http://127.0.0.1:8000/docs"


def test_numbers_fit_one_line():
    assert numbers(busy()).startswith(
        "extraction: 1,200 waiting, 8 running; verification: 0 waiting, 64 running; 2.3"
    )


def test_numbers_are_written_only_when_they_are_news(stack, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("cli.stack.screen.time.monotonic", lambda: now[0])
    console = Console(width=200, color_system=None)
    plain = PlainLines(console)
    idle = Observation(depths=(QueueDepth(Stage.EXTRACTION, 0, 0, None),))
    with console.capture() as capture:
        for observation in (NOT_LOOKED, idle, busy(), busy(), busy(), idle, idle):
            plain.show(stack, observation)
            now[0] += 10
    assert capture.get().splitlines() == [numbers(busy()), numbers(idle)]


def test_numbers_that_change_all_the_time_are_written_now_and_then(stack, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("cli.stack.screen.time.monotonic", lambda: now[0])
    console = Console(width=200, color_system=None)
    plain = PlainLines(console)
    with console.capture() as capture:
        for waiting in range(100):
            plain.show(stack, Observation(depths=(QueueDepth(Stage.EXTRACTION, waiting, 1, None),)))
            now[0] += 0.1
    assert len(capture.get().splitlines()) == 2


def test_a_message_keeps_its_lines_and_loses_its_control_characters():
    console = Console(width=20, color_system=None)
    plain = PlainLines(console)
    with console.capture() as capture:
        plain.say("one line that is longer than the screen\n    and \x1b[31mred")
    assert capture.get() == "one line that is longer than the screen\n    and \\x1b[31mred\n"


def test_the_announcement_names_the_addresses(stack):
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        PlainLines(console).announce("everything runs", stack)
    first, *rest = capture.get().splitlines()
    assert first == "everything runs"
    assert f"    Flower: {stack.flower_url}" in rest


def test_addresses_are_lines_that_can_be_copied(stack):
    lines = list(address_lines(stack))
    assert [line.split()[-1] for line in lines] == [address for _, address in addresses(stack)]
    assert (
        len(
            {
                line.index(address)
                for line, (_, address) in zip(lines, addresses(stack), strict=True)
            }
        )
        == 1
    )
