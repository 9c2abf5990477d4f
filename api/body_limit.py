"""Middleware that bounds request bodies by what arrives, whatever their headers promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Kind, Problem

# How long a client that is still sending may take to notice that it was answered. Closing at once
# would reset the connection, and the answer with it.
_LINGER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Most bytes of a body, and the setting that says so."""

    size: int
    setting: str

    def exceeded(self) -> Problem:
        """Return the problem of a larger body."""
        return Problem(
            413, Kind.TOO_LARGE, f"the body has more than {self.size:,} bytes ({self.setting})"
        )


class BodyLimitMiddleware:
    """Stop reading a body that passes its limit, and close connections with unread bodies.

    Parameters
    ----------
    app : ASGIApp
        What reads the bodies.
    default : BodyLimit
        For every path that is not in `by_path`.
    by_path : Mapping
        Limits of single paths.
    """

    def __init__(
        self, app: ASGIApp, *, default: BodyLimit, by_path: Mapping[str, BodyLimit]
    ) -> None:
        self._app = app
        self._default = default
        self._by_path = by_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._by_path.get(scope["path"], self._default)
        body = _Body(scope, limit, receive, send)
        await self._app(scope, body.receive, body.send)


class _Body:
    """One request's body: counted as it is read, and drained if it is not."""

    def __init__(self, scope: Scope, limit: BodyLimit, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"")
        self._declared = int(declared) if declared.isdigit() else 0
        self._unread = self._declared > 0 or b"transfer-encoding" in headers
        self._limit = limit
        self._receive = receive
        self._send = send
        self._arrived = 0
        self._closing = False

    async def receive(self) -> Message:
        if self._declared > self._limit.size:
            raise self._limit.exceeded()
        message = await self._receive()
        if message["type"] == "http.request":
            self._arrived += len(message.get("body", b""))
            self._unread = message.get("more_body", False)
            if self._arrived > self._limit.size:
                raise self._limit.exceeded()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._unread:
            self._closing = True
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        if self._closing and message["type"] == "http.response.body":
            await self._send_and_drain(message)
        else:
            await self._send(message)

    async def _send_and_drain(self, message: Message) -> None:
        last = not message.get("more_body", False)
        await self._send({**message, "more_body": True})
        if last:
            await self._drain()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self) -> None:
        with anyio.move_on_after(_LINGER_SECONDS):
            while self._unread:
                message = await self._receive()
                self._unread = message.get("more_body", False)
