from __future__ import annotations

import asyncio

import pytest

from api import body_limit
from api.body_limit import BodyLimit, BodyLimitMiddleware
from api.problems import Problem

LIMIT = BodyLimit(10, "HALLDETECT_SOMETHING")


class Exchange:
    """One request through the middleware, message by message."""

    def __init__(self, chunks, *, headers=(), path="/x", disconnects=False):
        self.scope = {"type": "http", "path": path, "headers": list(headers)}
        self.pending = [
            {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
            for number, chunk in enumerate(chunks, start=1)
        ]
        if disconnects:
            self.pending[-1] = {"type": "http.disconnect"}
        self.sent = []

    async def receive(self):
        return self.pending.pop(0) if self.pending else await asyncio.Event().wait()

    async def send(self, message):
        self.sent.append(message)

    def run(self, app, by_path=None):
        middleware = BodyLimitMiddleware(
            app, default=LIMIT, by_path=by_path or {}, stall_seconds=60.0
        )
        asyncio.run(middleware(self.scope, self.receive, self.send))

    @property
    def closes(self):
        return (b"connection", b"close") in self.sent[0]["headers"]


CHUNKED = [(b"transfer-encoding", b"chunked")]


def sized(number):
    return [(b"content-length", str(number).encode())]


async def answer(send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


async def reading(_, receive, send):
    while (await receive())["more_body"]:
        pass
    await answer(send)


async def not_reading(_, __, send):
    await answer(send)


def test_a_body_of_the_limit_passes_and_the_connection_stays_open():
    exchange = Exchange([b"12345", b"67890"], headers=CHUNKED)
    exchange.run(reading)
    assert not exchange.closes


@pytest.mark.parametrize("headers", [CHUNKED, sized(3), []])
def test_reading_stops_at_the_limit_whatever_the_headers_say(headers):
    exchange = Exchange([b"12345", b"678901", b"never read"], headers=headers)
    with pytest.raises(Problem, match=r"more than 10 bytes \(HALLDETECT_SOMETHING\)") as caught:
        exchange.run(reading)
    assert caught.value.status == 413
    assert len(exchange.pending) == 1


def test_a_declared_length_over_the_limit_is_refused_before_reading():
    exchange = Exchange([b"x"], headers=sized(11))
    with pytest.raises(Problem, match="more than 10 bytes"):
        exchange.run(reading)
    assert len(exchange.pending) == 1


def test_paths_have_limits_of_their_own():
    exchange = Exchange([b"x" * 50], headers=CHUNKED, path="/large")
    exchange.run(reading, by_path={"/large": BodyLimit(50, "OTHER")})
    assert exchange.sent[0]["status"] == 200


def test_an_unread_body_is_drained_after_the_answer_and_the_connection_closed():
    exchange = Exchange([b"x" * 100, b"y" * 100], headers=sized(200))
    exchange.run(not_reading)
    assert exchange.closes
    assert exchange.pending == []
    assert [message.get("body") for message in exchange.sent] == [None, b"done", b""]
    assert [message.get("more_body") for message in exchange.sent] == [None, True, False]


def test_draining_ends_when_the_client_goes_away():
    exchange = Exchange([b"x", b""], headers=sized(200), disconnects=True)
    exchange.run(not_reading)
    assert exchange.sent[-1]["more_body"] is False


def test_draining_ends_when_the_client_just_waits(monkeypatch):
    monkeypatch.setattr(body_limit, "_LINGER_SECONDS", 0.01)
    exchange = Exchange([], headers=sized(200))
    exchange.run(not_reading)
    assert exchange.sent[-1]["more_body"] is False


def test_requests_without_a_body_keep_their_connection():
    exchange = Exchange([])
    exchange.run(not_reading)
    assert not exchange.closes


def test_other_than_http_passes_through():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    exchange = Exchange([])
    exchange.scope = {"type": "lifespan"}
    exchange.run(app)
    assert seen == ["lifespan"]
