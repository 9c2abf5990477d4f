"""A worker's own ``/metrics``, for Prometheus: one small HTTP server beside the work.

It holds counts and times only, no text, id or name of a key, so it asks nobody for a key and may
listen beyond loopback in a private network. Whoever reaches it can cost the worker a few threads
and no more.
"""

from __future__ import annotations

import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from halldetect.errors import InputError

_MOST_CONNECTIONS = 8
_CLIENT_SECONDS = 10.0


class MetricsServer:
    """Serves a registry from a thread of its own.

    Parameters
    ----------
    registry : CollectorRegistry
        The figures.
    host : str
        Where to listen.
    port : int
        At which port.

    Raises
    ------
    InputError
        Nothing can listen there.
    """

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        try:
            self._server = _Server(registry, host, port)
        except OSError as error:
            raise InputError(
                f"the worker's metrics cannot be served at {host}:{port} ({error.strerror}): set "
                "HALLDETECT_METRICS_PORT to a free port, one of its own for each worker of a "
                "machine, and HALLDETECT_METRICS_HOST to an address of this machine"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        self.registry = registry
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread; hang up on those who come while all threads are taken."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, and let the next one in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients hang up, and that is no fault of the worker."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _CLIENT_SECONDS

    def do_GET(self) -> None:
        """Answer with all figures."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "only /metrics is here")
            return
        content = generate_latest(self.server.registry)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        """Name no version to strangers."""
        return "halldetect"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Write no line a scrape."""
