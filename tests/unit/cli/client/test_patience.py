import threading
import time
from types import SimpleNamespace

import pytest

from cli.client import patience
from cli.client.errors import ServiceUnavailable
from cli.client.patience import telling_of_silence
from cli.client.service import _upload_timeout

EMPTY = {"items": [], "next_cursor": None}
SECONDS_AT_MOST = 60


@pytest.fixture
def pauses(monkeypatch):
    noted = []
    clock = SimpleNamespace(sleep=noted.append, monotonic=time.monotonic)
    monkeypatch.setattr(patience, "time", clock)
    return noted


def results(client):
    with client.results(12, with_matrix=False) as pieces:
        return b"".join(pieces)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.batch(12),
        lambda client: client.cancel(12),
        lambda client: client.retry_batch(12),
        lambda client: client.create_webhook("https://hooks.example.org/"),
        lambda client: list(client.audits(batch_id=12)),
        results,
    ],
)
def test_every_command_waits_for_its_turn(service, steps, pauses, capsys, ask):
    busy = steps["problem"](429, "too many requests", retry_after=3)
    with service(busy, busy, steps["answer"](200, EMPTY)) as (client, script):
        ask(client)
    assert pauses == [3.0, 3.0]
    assert len({request[:2] + request[3:] for request in script.requests}) == 1
    assert len(script.requests) == 3
    assert capsys.readouterr().err.count("takes this request in 3 s") == 1


@pytest.mark.parametrize(("seconds", "waited"), [(61, []), (25, [25.0, 25.0]), (0, [1.0] * 60)])
def test_nobody_waits_for_ever(service, steps, pauses, seconds, waited):
    busy = steps["problem"](429, "too many requests", retry_after=seconds)
    with service(busy) as (client, _), pytest.raises(ServiceUnavailable, match="too many") as told:
        client.cancel(12)
    assert pauses == waited
    assert told.value.retry_after == seconds


@pytest.fixture
def told(monkeypatch):
    """What is said while a request is unanswered, and an event that something was."""
    messages, event = [], threading.Event()

    def note(message):
        messages.append(message)
        event.set()

    monkeypatch.setattr(patience, "_SECONDS_BEFORE_A_WORD", 1.0)
    monkeypatch.setattr(patience, "tell", note)
    return messages, event


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.batch(12),
        results,
        lambda client: client.upload_batch(
            [b"x"], size=1, idempotency_key="k", policy=None, priority=None
        ),
    ],
)
def test_a_service_that_says_nothing_is_named_while_it_is_waited_for(service, steps, told, ask):
    messages, event = told

    def silent(handler):
        assert event.wait(SECONDS_AT_MOST)
        steps["answer"](200, {})(handler)

    with service(silent) as (client, _):
        ask(client)
        assert f"{client.address}: no answer for 1 s; still waiting" in messages


def test_what_moves_is_not_silent(told):
    messages, event = told
    with telling_of_silence("here") as move:
        for _ in range(2):
            assert event.wait(SECONDS_AT_MOST)
            event.clear()
            move()
        assert event.wait(SECONDS_AT_MOST)
    assert messages[:3] == ["here: no answer for 1 s; still waiting"] * 3


def test_only_a_large_upload_may_be_checked_for_half_an_hour():
    assert _upload_timeout(1_000).read < 300
    assert _upload_timeout(20_000_000).read > 300
    assert _upload_timeout(10**12).read == 1800


def test_a_frozen_service_ends_a_request(service, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr("cli.client.service._TIMEOUT", 0.2)
    with service(lambda _: release.wait(SECONDS_AT_MOST)) as (client, _):
        with pytest.raises(ServiceUnavailable, match="no answer in time"):
            client.batch(12)
        release.set()
