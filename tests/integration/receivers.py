"""Receivers of webhooks on loopback: each connection is handled as the test says."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# For hooks.example.org, signed by itself, from 2020 to 2129; made for these tests.
CERTIFICATE = Path(__file__).parent / "worker" / "hooks_example_org.pem"


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


def answers(status, *headers, body=b""):
    """Return what answers every request in the same way."""
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status} x", *headers))
    answer = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return lambda connection, request: connection.sendall(answer)


def in_turn(*handles):
    """Return what handles each connection by the next of `handles`."""
    left = iter(handles)

    def handle(connection, request):
        next(left)(connection, request)

    return handle


class Receiver:
    """A server; `handle` gets each connection with its request, and the connection then ends.

    Parameters
    ----------
    handle : callable
        Connection and request to anything; `answers(200)` makes one.
    tls : bool
        Whether it speaks TLS, with the certificate of hooks.example.org.
    """

    def __init__(self, handle=None, *, tls=False):
        self.handle = handle or answers(200)
        self.requests = []
        self.server_names = []
        self.ended = threading.Event()
        self._tls = self._context() if tls else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook?token=of-the-receiver"

    def stop(self):
        """End it; what it still does with connections ends with the connections."""
        self.ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in (self._accepting, *self._threads):
            thread.join(60)

    def _context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        context.sni_callback = lambda _, name, __: self.server_names.append(name)
        return context

    def _accept(self):
        while not self.ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(60)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        with connection, suppress(OSError):
            if self._tls is None:
                self._answer(connection)
            else:
                with self._tls.wrap_socket(connection, server_side=True) as secured:
                    self._answer(secured)

    def _answer(self, connection):
        request = _read_request(connection)
        if request is not None:
            self.requests.append(request)
            self.handle(connection, request)


def _read_request(connection):
    with connection.makefile("rb") as stream:
        line = stream.readline().decode("latin-1").strip()
        if not line:
            return None
        headers = {}
        while field := stream.readline().decode("latin-1").strip():
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        return Request(line, headers, stream.read(int(headers.get("content-length", 0))))
