"""One request to a receiver that nobody has reason to trust: bounded, pinned, never redirected.

The name is resolved once; every address it leads to is checked, and the connection goes to the
addresses that were checked. A name that leads elsewhere the next moment leads nobody astray.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import httpcore

from halldetect.errors import InputError
from halldetect.logs import get_logger
from halldetect.webhook_targets import Address, AllowedTargets, WebhookTarget, parse_target
from worker.webhook_answers import Answer, AttemptOutcome
from worker.webhook_message import Message
from worker.webhook_pauses import asked_pause

DEADLINE_SECONDS = 10.0
# What a receiver says is not looked at; it is read so far that the connection ends in peace.
_MOST_READ_BYTES = 1 << 16
_TOO_LATE = (httpcore.TimeoutException, TimeoutError)
_NO_ANSWER = (*_TOO_LATE, httpcore.NetworkError, httpcore.ProtocolError)

Resolve = Callable[[str, int, float], Sequence[Address]]

_log = get_logger(__name__)


class _Refused(Exception):
    """The request cannot be made; the message says why."""


class WebhookSender:
    """Sends messages; proxies, cookies and credentials of the environment are no part of it.

    Parameters
    ----------
    allowed : AllowedTargets
        What is called although it is not public.
    deadline_seconds : float
        For all of a request: resolving, connecting, and the answer.
    resolve : callable
        Host, port and seconds to addresses; raises OSError.
    """

    def __init__(
        self,
        allowed: AllowedTargets,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        resolve: Resolve | None = None,
    ) -> None:
        self._allowed = allowed
        self._seconds = deadline_seconds
        self._resolve = resolve or resolve_host
        self._tls: ssl.SSLContext | None = None

    def send(self, url: str, message: Message) -> Answer:
        """Send one message and return what came of it; what the network does raises nothing."""
        deadline = _Deadline(self._seconds)
        try:
            target = parse_target(url, self._allowed)
            return self._post(target, self._addresses(target, deadline), message, deadline)
        except (InputError, _Refused) as error:
            return _failed(AttemptOutcome.TARGET, str(error))
        except _TOO_LATE:
            return _failed(AttemptOutcome.TIMEOUT, f"it did not answer within {self._seconds:g} s")
        except httpcore.NetworkError as error:
            if isinstance(error.__cause__ or error.__context__, ssl.SSLError):
                return _failed(AttemptOutcome.TLS, "its certificate or its TLS was not accepted")
            return _failed(AttemptOutcome.CONNECTION, "the connection was refused or lost")
        except httpcore.ProtocolError:
            return _failed(AttemptOutcome.NO_HTTP, "what it answered is no HTTP")

    def _addresses(self, target: WebhookTarget, deadline: _Deadline) -> Sequence[Address]:
        if target.address is not None:
            found: Sequence[Address] = [target.address]
        else:
            try:
                found = self._resolve(target.host, target.port, deadline.left())
            except TimeoutError:
                raise
            except OSError:  # of the resolver: there is no such name
                found = []
        if not found or not self._allowed.usable(target, found):
            # The owner of a webhook is not told which names there are inside this network.
            _log.warning(
                "a webhook leads to no public address",
                target=target.loggable,
                addresses=[str(address) for address in found],
            )
            raise _Refused("its name leads to no public address")
        return found

    def _post(
        self,
        target: WebhookTarget,
        addresses: Sequence[Address],
        message: Message,
        deadline: _Deadline,
    ) -> Answer:
        url = httpcore.URL(
            scheme=target.scheme.encode(),
            host=target.host.encode(),
            port=target.port,
            target=target.path.encode(),
        )
        with (
            httpcore.ConnectionPool(
                ssl_context=self._tls_context() if target.scheme == "https" else None,
                network_backend=_PinnedBackend(addresses, deadline),
                max_connections=1,
            ) as pool,
            pool.stream(
                "POST",
                url,
                headers=[
                    ("Host", target.authority),
                    ("Connection", "close"),
                    *message.headers.items(),
                ],
                content=message.body,
            ) as response,
        ):
            answer = _answer(response.status, response.headers)
            with suppress(*_NO_ANSWER):  # the status is known
                _read_some(response.iter_stream())
        return answer

    def _tls_context(self) -> ssl.SSLContext:
        # Made when it is first needed: reading all certificates takes a while.
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def resolve_host(host: str, port: int, seconds: float) -> Sequence[Address]:
    """Return the addresses of a host, each once.

    Raises
    ------
    OSError
        There is no such host.
    TimeoutError
        Nobody could tell in time. The thread that asks ends when the system gives up.
    """
    answers: queue.SimpleQueue[list[Any] | OSError | UnicodeError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    try:
        found = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(found, UnicodeError):
        raise OSError(str(found)) from None
    if isinstance(found, OSError):
        raise found
    return list(dict.fromkeys(ip_address(sockaddr[0]) for *_, sockaddr in found))


def _failed(outcome: AttemptOutcome, error: str) -> Answer:
    return Answer(outcome, error=error)


def _answer(status: int, fields: Iterable[tuple[bytes, bytes]]) -> Answer:
    outcome = AttemptOutcome.of_status(status)
    if outcome is AttemptOutcome.DELIVERED:
        return Answer(outcome, status)
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in fields}
    return Answer(outcome, status, f"it answered {status}", asked_pause(status, headers))


class _Deadline:
    """One span of time for everything that a request does."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left.

        Raises
        ------
        TimeoutError
            When none are.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked, whatever name it is asked for."""

    def __init__(self, addresses: Sequence[Address], deadline: _Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        last = len(self._addresses) - 1
        for number, address in enumerate(self._addresses):
            left = self._deadline.left()
            try:
                stream = self._sockets.connect_tcp(
                    str(address),
                    port,
                    # The others should get a try, too.
                    timeout=left / (last - number + 1),
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == last:
                    raise
            else:
                return _BoundedStream(stream, self._deadline)
        raise httpcore.ConnectError("there is no address to connect to")


class _BoundedStream(httpcore.NetworkStream):
    """A connection on which every step has only the time that is left of the whole."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: _Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left())
        return _BoundedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _read_some(pieces: Iterable[bytes]) -> None:
    left = _MOST_READ_BYTES
    for piece in pieces:
        left -= len(piece)
        if left <= 0:
            return
