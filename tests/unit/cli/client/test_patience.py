import threading

import pytest

from cli.client import patience
from cli.client.errors import ServiceUnavailable
from cli.client.patience import telling_of_silence
from cli.client.service import Service, _upload_timeout

EMPTY = {"items": [], "next_cursor": None}
SECONDS_AT_MOST = 60


def results(client):
    with client.results(12, with_matrix=False) as pieces:
        return b"".join(pieces)


# What a second time does no harm: it reads, or the service knows it again.
REPEATABLE = [
    lambda client: client.batch(12),
    lambda client: client.cancel(12),
    lambda client: list(client.audits(batch_id=12)),
    lambda client: list(client.webhooks()),
    results,
    lambda client: client._request("GET", "/v1/policies"),
]
NOT_REPEATABLE = [
    lambda client: client.retry_audit(12),
    lambda client: client.retry_batch(12),
    lambda client: client.create_webhook("https://hooks.example.org/"),
    lambda client: client._request("POST", "/v1/claims/1/reviews", json={}),
]


@pytest.mark.parametrize("ask", REPEATABLE + NOT_REPEATABLE)
@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, "urn:odd"), (503, "urn:halldetect:problem:unavailable")],
)
def test_every_command_waits_where_nothing_was_done(
    service, steps, clock, capsys, ask, status, kind
):
    busy = steps["problem"](status, "not now", type=kind, retry_after=3)
    with service(busy, busy, steps["answer"](200, EMPTY)) as (client, script):
        ask(client)
    assert clock.pauses == [3.0, 3.0]
    assert len({request[:2] + request[3:] for request in script.requests}) == 1
    assert len(script.requests) == 3
    said = "not now; trying again in 3 s, for at most 60 s\n"
    assert capsys.readouterr().err == f"halldetect: {client.address}: {said}"


UNCLEAR = ["cut", "proxy", "unknown outcome"]


@pytest.fixture
def unclear(steps):
    """A step after which nobody knows what the service did."""

    def choose(kind):
        outcome = "urn:halldetect:problem:outcome-unknown"
        return {
            "cut": steps["cut"](),
            "proxy": steps["answer"](502, b"<html>", "text/html"),
            "unknown outcome": steps["problem"](503, "gone", type=outcome, retry_after=1),
        }[kind]

    return choose


@pytest.mark.parametrize("ask", REPEATABLE)
@pytest.mark.parametrize("kind", UNCLEAR)
def test_what_does_no_harm_twice_is_sent_again(service, steps, clock, unclear, ask, kind):
    with service(unclear(kind), steps["answer"](200, EMPTY)) as (client, script):
        ask(client)
    assert clock.pauses == [1.0]
    assert len(script.requests) == 2


@pytest.mark.parametrize("ask", NOT_REPEATABLE)
@pytest.mark.parametrize("kind", UNCLEAR)
def test_what_may_have_been_done_is_not_sent_again(service, steps, clock, unclear, ask, kind):
    with (
        service(unclear(kind), steps["answer"](200, EMPTY)) as (client, script),
        pytest.raises(ServiceUnavailable, match="is not known: look before you ask again"),
    ):
        ask(client)
    assert clock.pauses == []
    assert len(script.requests) == 1


@pytest.mark.parametrize("ask", REPEATABLE + NOT_REPEATABLE)
def test_where_nobody_listens_every_command_waits_for_a_minute(closed_port, clock, ask):
    with Service(closed_port) as client, pytest.raises(ServiceUnavailable, match="is it running"):
        ask(client)
    assert clock.pauses == [1.0] * 60


@pytest.mark.parametrize(("seconds", "waited"), [(61, []), (25, [25.0, 25.0]), (0, [1.0] * 60)])
def test_nobody_waits_for_ever(service, steps, clock, seconds, waited):
    busy = steps["problem"](429, "too many requests", retry_after=seconds)
    with service(busy) as (client, _), pytest.raises(ServiceUnavailable, match="too many") as told:
        client.cancel(12)
    assert clock.pauses == waited
    assert told.value.retry_after == seconds


def test_a_display_is_told_instead_of_its_terminal(service, steps, clock, capsys):
    away, said = steps["problem"](503, "away"), []
    with service(away, steps["answer"](200, EMPTY)) as (client, _), client.saying_to(said.append):
        client.batch(12)
    assert said == [f"{client.address}: away; trying again in 1 s, for at most 60 s"]
    assert capsys.readouterr().err == ""


@pytest.fixture
def told(monkeypatch):
    """What is said while a request is unanswered, and an event that something was."""
    messages, event = [], threading.Event()

    def note(message):
        messages.append(message)
        event.set()

    monkeypatch.setattr(patience, "_SECONDS_BEFORE_A_WORD", 1.0)
    monkeypatch.setattr("cli.client.service.tell", note)
    return messages, event, note


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
    messages, event, _ = told

    def silent(handler):
        assert event.wait(SECONDS_AT_MOST)
        steps["answer"](200, {})(handler)

    with service(silent) as (client, _):
        ask(client)
        assert f"{client.address}: no answer for 1 s; still waiting" in messages


def test_what_moves_is_not_silent(told):
    messages, event, note = told
    with telling_of_silence("here", note) as move:
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
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)
    monkeypatch.setattr("cli.client.service._TIMEOUT", 0.2)
    with service(lambda _: release.wait(SECONDS_AT_MOST)) as (client, _):
        with pytest.raises(ServiceUnavailable, match="no answer in time"):
            client.batch(12)
        release.set()
