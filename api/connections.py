"""Connections: how many there may be at once, and how long a client may keep one and do nothing.

uvicorn by itself waits for ever for the rest of a request's head, and for a client that does not
read its answer. Bodies are `api.body_limit`'s.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import struct
import termios
from typing import Any, ClassVar, cast

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.body_limit import LEAST_BYTES_A_SECOND
from api.problems import Kind, Problem
from halldetect.logs import get_logger

MOST_CONNECTIONS = 500
RETRY_SECONDS = 5
_LOOKS_A_PERIOD = 4
# An upload has a temporary file beside its connection.
_FILES_A_CONNECTION = 2
_OTHER_FILES = 100

_log = get_logger(__name__)


class _CountedTransport:
    """A transport that knows how much was handed to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    def taken_by_client(self) -> int:
        """Return how many bytes are neither in our buffers nor, where it tells, the system's."""
        held = self._transport.get_write_buffer_size()
        connection = self._transport.get_extra_info("socket")
        try:
            queued = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # it is closed, or this system does not tell
            return self._written - held
        return self._written - held - int(struct.unpack("=i", queued)[0])


class PatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with patience that ends.

    A client has `stall_seconds` for the whole head of a request. While an answer waits to be sent,
    it must take `LEAST_BYTES_A_SECOND` in each such period. Else the connection is cut. Beyond
    `MOST_CONNECTIONS`, the one that has waited for a request longest makes room: whoever opens
    connections and sends nothing locks nobody out. If all of them are at work, the newcomer gets
    a 503.
    """

    stall_seconds: ClassVar[float]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch a client."""
        self._counted = _CountedTransport(transport)
        super().connection_made(cast(asyncio.Transport, self._counted))
        self._idle_since = self._period_began = self.loop.time()
        self._taken_before = 0
        if len(self.connections) > MOST_CONNECTIONS and not self._make_room():
            self.app = _refuse_for_now
        self._next_look = self.loop.call_later(self._pause, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch it no longer."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def _pause(self) -> float:
        return self.stall_seconds / _LOOKS_A_PERIOD

    @property
    def _awaits_request(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        return answered and not self.transport.get_write_buffer_size()

    def _look(self) -> None:
        now = self.loop.time()
        if reason := self._reason_to_cut(now):
            _log.info(reason, client=self.client[0] if self.client else None)
            self.transport.abort()
        else:
            self._next_look = self.loop.call_later(self._pause, self._look)

    def _reason_to_cut(self, now: float) -> str | None:
        if self._awaits_request:
            self._begin_period(now)
            waited = now - self._idle_since
            return "a client sent no whole request" if waited >= self.stall_seconds else None
        self._idle_since = now
        if not self.transport.get_write_buffer_size():
            self._begin_period(now)  # it is us who have nothing to send
        elif now - self._period_began >= self.stall_seconds:
            taken = self._counted.taken_by_client() - self._taken_before
            if taken < LEAST_BYTES_A_SECOND * self.stall_seconds:
                return "a client did not read its answer"
            self._begin_period(now)
        return None

    def _begin_period(self, now: float) -> None:
        self._period_began = now
        self._taken_before = self._counted.taken_by_client()

    def _make_room(self) -> bool:
        waiting = [
            connection
            for connection in self.connections
            if isinstance(connection, PatientProtocol)
            and connection is not self
            and connection._awaits_request
            and not connection.transport.is_closing()
        ]
        if not waiting:
            return False
        min(waiting, key=lambda connection: connection._idle_since).transport.abort()
        return True


def patient_protocol(seconds: float) -> type[PatientProtocol]:
    """Return the protocol for uvicorn, with the patience that a setting gives it."""
    return type("PatientProtocol", (PatientProtocol,), {"stall_seconds": seconds})


def allow_files() -> None:
    """Raise this process's limit on open files to what so many connections need, if it may."""
    wanted = MOST_CONNECTIONS * _FILES_A_CONNECTION + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


async def _refuse_for_now(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem(
        503,
        Kind.UNAVAILABLE,
        f"the service has {MOST_CONNECTIONS} connections at work already: try again soon",
        headers={"Retry-After": str(RETRY_SECONDS), "Connection": "close"},
    )
    await problem.response()(scope, receive, send)
