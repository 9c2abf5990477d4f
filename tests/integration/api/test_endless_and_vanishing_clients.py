"""A real process against bodies without end, lengths that lie, and clients that vanish."""

from __future__ import annotations

import json
import re
import threading
from contextlib import suppress

import psycopg
import pytest
from api_process import ApiProcess, wait_until
from sqlalchemy.engine import make_url

MIB = 1 << 20
LIMITS = {"max_body_bytes": MIB, "max_upload_bytes": 4 * MIB}
PATHS = {
    "/v1/audits": ("application/json", MIB, "HALLDETECT_MAX_BODY_BYTES"),
    "/v1/batches": ("application/jsonl", 4 * MIB, "HALLDETECT_MAX_UPLOAD_BYTES"),
}
# What one body may take is in memory as JSON and as its parts, and the allocator keeps some.
ALLOWED_GROWTH = 32 * MIB


@pytest.fixture(scope="module")
def database(module_database):
    """One for all of them: nothing is ever stored."""
    return module_database


@pytest.fixture(scope="module")
def api(tmp_path_factory, database, _valkey):
    api = ApiProcess(tmp_path_factory.mktemp("api"), database, _valkey.url, **LIMITS)
    try:
        api.wait_until_it_answers()
        yield api
    finally:
        api.stop()


@pytest.fixture
def states(postgres, database):
    """Return the states of the API's connections to Postgres."""
    name = make_url(database).database

    def look():
        with psycopg.connect(postgres.url) as connection:
            rows = connection.execute(
                "SELECT state FROM pg_stat_activity"
                " WHERE datname = %s AND application_name = 'halldetect'",
                [name],
            ).fetchall()
            return {row[0] for row in rows}

    return look


class Peak:
    """The most memory that a process held while this was entered."""

    def __init__(self, api):
        self._api = api
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.bytes = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.wait(0.01):
            self.bytes = max(self.bytes, self._api.memory())


def head(path, fields):
    request = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PATHS[path][0]}"
    return f"{request}\r\n{fields}\r\n\r\n".encode()


def send_without_end(api, path, most):
    """Send chunks until the API answers; return its answer, and how much was sent before."""
    piece = b" " * (64 << 10)
    sent = 0
    with api.connect() as connection:
        connection.sendall(head(path, "Transfer-Encoding: chunked"))
        # Refused, it stops to read, and cuts the connection when it has been patient.
        with suppress(ConnectionError):
            while sent < most:
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
                sent += len(piece)
        answer = b""
        with suppress(ConnectionError):
            while data := connection.recv(65536):
                answer += data
    return answer, sent


@pytest.mark.parametrize("path", PATHS)
def test_a_body_without_end_is_refused_at_the_limit_in_flat_memory(api, stored, path):
    _, limit, setting = PATHS[path]
    send_without_end(api, path, limit + MIB)  # buffers have grown to what they need
    before = api.memory()
    with Peak(api) as peak:
        for _ in range(3):
            answer, _ = send_without_end(api, path, limit + 64 * 1024)
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert f"more than {limit:,} bytes".encode() in answer
            assert setting.encode() in answer
            assert b"connection: close" in answer
        _, sent = send_without_end(api, path, 1 << 40)
        assert sent < 1 << 40  # it hung up
    assert peak.bytes - before < ALLOWED_GROWTH
    assert stored("audits") == stored("batches") == 0
    assert api.request("GET", "/healthz")[0] == 200


def test_one_byte_too_many_sent_slowly_is_refused(api, stored):
    with api.connect() as connection:
        connection.sendall(head("/v1/audits", "Transfer-Encoding: chunked"))
        for _ in range(16):
            connection.sendall(b"%x\r\n%b\r\n" % (MIB // 16, b" " * (MIB // 16)))
            threading.Event().wait(0.05)
        connection.sendall(b"1\r\nx\r\n")
        answer = b""
        while data := connection.recv(65536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert stored("audits") == 0


@pytest.mark.parametrize("path", PATHS)
def test_a_length_that_understates_ends_the_body_there(api, stored, path):
    body = json.dumps({"source": "The mill closed.", "response": "It closed."}).encode()
    with api.connect() as connection:
        connection.sendall(head(path, "Content-Length: 10") + body)
        answer = b""
        with suppress(ConnectionResetError):
            while data := connection.recv(65536):
                answer += data
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert stored("audits") == stored("batches") == 0
    assert api.request("GET", "/healthz")[0] == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_hundred_clients_that_vanish_leave_nothing_behind(api, stored, states, path):
    before, gone = len(api.entries_so_far()), len(api.entries("went away"))
    for _ in range(100):
        with api.connect() as connection:
            connection.sendall(head(path, "Content-Length: 1000") + b"0123456789")
    wait_until(lambda: api.connections_held() == 0)
    wait_until(lambda: len(api.entries("went away")) >= gone + 100)
    logged = api.entries()[before:]
    assert len(logged) == 100
    assert {entry["level"] for entry in logged} == {"info"}
    assert api.request("GET", "/healthz")[0] == 200
    status, _, metrics = api.request("GET", "/metrics")
    assert status == 200
    failures = re.findall(rb'^\S*status(?:_code)?="5\S* (\S+)$', metrics, re.MULTILINE)
    assert all(float(count) == 0 for count in failures)
    wait_until(lambda: states() <= {"idle"})
    assert stored("audits") == stored("batches") == 0


def test_every_route_that_reads_a_body_bounds_it_before_it_is_parsed(make_client):
    client = make_client(max_body_bytes=100, max_upload_bytes=100)
    reading = [
        (path, kind)
        for path, operations in client.get("/openapi.json").json()["paths"].items()
        for operation in operations.values()
        for kind in operation.get("requestBody", {}).get("content", ())
    ]
    assert len({path for path, _ in reading}) >= 5
    for path, kind in reading:
        for body in (b"{" * 101, iter([b"{" * 50, b"{" * 51])):  # declared, and in chunks
            answer = client.post(
                re.sub(r"{\w+}", "1", path), content=body, headers={"Content-Type": kind}
            )
            assert answer.status_code == 413, (path, kind)
            assert "more than 100 bytes" in answer.json()["detail"]
