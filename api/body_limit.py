"""Middleware that bounds request bodies by what arrives, whatever their headers promise.

They have a largest size, and a slowest pace. Where one ends is told in one way only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Kind, Problem

LEAST_BYTES_A_SECOND = 1_000
# How long a client that is still sending may take to notice that it was answered. Closing at once
# would reset the connection, and the answer with it.
_LINGER_SECONDS = 2.0
# Whoever goes by the other field finds another request in the same bytes (RFC 9112, 6.1).
_TWO_ENDS = Problem(
    400,
    Kind.INVALID_REQUEST,
    "the request has both a Content-Length and a Transfer-Encoding, so where it ends is not sure: "
    "send one of them",
)


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
    """Stop reading a body that passes its limit or stalls, and close what has unread bodies.

    A request that tells of its end in two ways is refused.

    Parameters
    ----------
    app : ASGIApp
        What reads the bodies.
    default : BodyLimit
        For every path that is not in `by_path`.
    by_path : Mapping
        Limits of single paths.
    stall_seconds : float
        In each such period of waiting, `LEAST_BYTES_A_SECOND` must arrive.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        default: BodyLimit,
        by_path: Mapping[str, BodyLimit],
        stall_seconds: float,
    ) -> None:
        self._app = app
        self._default = default
        self._by_path = by_path
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._by_path.get(scope["path"], self._default)
        body = _Body(scope, limit, _Pace(self._stall_seconds), receive, send)
        if body.has_two_ends:  # it is not read, so the connection is closed
            await _TWO_ENDS.response()(scope, body.receive, body.send)
        else:
            await self._app(scope, body.receive, body.send)


class _Pace:
    """Whether a body arrives fast enough; only the time counts in which it is waited for."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waited = 0.0  # in this period
        self._arrived = 0

    async def next_of(self, receive: Receive) -> Message:
        """Wait for the next part of a body.

        Raises
        ------
        Problem
            When too little arrived for too long.
        """
        while True:
            began = anyio.current_time()
            with anyio.move_on_after(self._seconds - self._waited):
                message = await receive()
                self._waited += anyio.current_time() - began
                self._arrived += len(message.get("body", b""))
                return message
            if self._arrived < LEAST_BYTES_A_SECOND * self._seconds:
                raise Problem(
                    408,
                    Kind.TOO_SLOW,
                    f"{self._arrived:,} bytes of the body arrived in {self._seconds:.0f} s "
                    "(HALLDETECT_STALLED_CLIENT_SECONDS); nothing was stored: send it again",
                )
            self._waited, self._arrived = 0.0, 0


class _Body:
    """One request's body: counted as it is read, and drained if it is not."""

    def __init__(
        self, scope: Scope, limit: BodyLimit, pace: _Pace, receive: Receive, send: Send
    ) -> None:
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"")
        self._declared = int(declared) if declared.isdigit() else 0
        self.has_two_ends = b"content-length" in headers and b"transfer-encoding" in headers
        self._unread = self._declared > 0 or b"transfer-encoding" in headers
        self._limit = limit
        self._pace = pace
        self._receive = receive
        self._send = send
        self._arrived = 0
        self._closing = False

    async def receive(self) -> Message:
        if self._declared > self._limit.size:
            raise self._limit.exceeded()
        if self._unread:
            message = await self._pace.next_of(self._receive)
        else:  # until the client goes away
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
