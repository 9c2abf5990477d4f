"""A server that misbehaves on demand; what the real one answers is tested against the real one."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cli.client import patience
from cli.client.service import Service

BATCH = {
    "id": "12",
    "status": "in_progress",
    "total": 10,
    "queued": 3,
    "extracted": 1,
    "running": 1,
    "completed": 5,
    "failed": 1,
    "cancelled": 0,
    "waiting": 4,
    "hallucinated": 2,
    "faithful": 2,
    "no_checkable_claims": 1,
    "supported": 9,
    "contradicted": 2,
    "unsupported": 3,
    "created_at": "2026-03-01T20:00:00Z",
    "finished_at": None,
}


@pytest.fixture
def batch():
    """Builds the service's description of a batch."""
    return lambda **fields: {**BATCH, **fields}


class Script:
    """What the server does, request by request, and what it was sent."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.requests = []

    def take(self, handler):
        if "Transfer-Encoding" in handler.headers:
            body = _chunks(handler.rfile)
        else:
            body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.requests.append((handler.command, handler.path, dict(handler.headers), body))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        step(handler)


def _chunks(file):
    """Read a body of a length that was not announced."""
    content = b""
    while (size := int(file.readline() or b"0", 16)) > 0:
        content += file.read(size)
        file.readline()
    return content


def answer(status, document, media_type="application/json", *, retry_after=None):
    """A step that answers as told."""
    content = document if isinstance(document, bytes) else json.dumps(document).encode()

    def step(handler):
        handler.send_response(status)
        handler.send_header("Content-Type", media_type)
        handler.send_header("Content-Length", str(len(content)))
        if retry_after is not None:
            handler.send_header("Retry-After", str(retry_after))
        handler.end_headers()
        handler.wfile.write(content)

    return step


def problem(status, detail, *, retry_after=None, **members):
    """A step that answers with a problem document."""
    document = {"type": "urn:x", "title": "odd", "status": status, "detail": detail, **members}
    return answer(status, document, "application/problem+json", retry_after=retry_after)


def cut(content=b"", promised=10_000):
    """A step that breaks off in the middle of its answer; without content, before it."""

    def step(handler):
        if content:
            handler.send_response(200)
            handler.send_header("Content-Length", str(promised))
            handler.end_headers()
            handler.wfile.write(content)
        handler.close_connection = True

    return step


@pytest.fixture
def steps():
    """The kinds of steps that a script is made of."""
    return {"answer": answer, "problem": problem, "cut": cut}


@pytest.fixture
def serving():
    """Runs a script as a server; gives its address and what it has seen."""

    @contextmanager
    def run(*steps):
        script = Script(*steps)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                script.take(self)

            do_POST = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", script
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    return run


@pytest.fixture
def service(serving):
    """Runs a script as a server; gives a client of it and what it has seen."""

    @contextmanager
    def run(*steps):
        with serving(*steps) as (address, script), Service(address) as client:
            yield client, script

    return run


@pytest.fixture
def closed_port():
    """An address where nobody listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_port
    return f"http://127.0.0.1:{port}"


class Clock:
    """Time that passes in pauses only, and when a test says so; the pauses are noted."""

    def __init__(self):
        self.now = 0.0
        self.pauses = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    """The clock by which commands wait."""
    clock = Clock()
    monkeypatch.setattr(patience, "time", clock)
    return clock
