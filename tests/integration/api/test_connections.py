"""What happens on real sockets: bodies without end, clients that go away, answers while sending."""

from __future__ import annotations

import json
import socket
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

HEAD = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {type}\r\n{more}\r\n"


def head(path, *, kind="application/jsonl", **more):
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    return HEAD.format(path=path, type=kind, more=fields).encode()


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


LAST_CHUNK = b"0\r\n\r\n"


def read_all(connection):
    """Read until the server closes the connection."""
    received = b""
    while data := connection.recv(65536):
        received += data
    return received


@pytest.fixture
def pool(server):
    return server.app.state.service.engine.pool


@pytest.fixture
def quiet(server, pool, stored, wait_until):
    """Check that nothing was stored and nothing is held."""

    def check():
        wait_until(lambda: pool.checkedout() == 0)
        assert [stored(table) for table in ("batches", "audits", "idempotency_keys")] == [0, 0, 0]

    return check


def test_an_upload_that_breaks_off_stores_nothing_and_can_be_repeated(
    server, record, jsonl, quiet, wait_until
):
    body = jsonl(*(record(str(number)) for number in range(101)))
    half = body[: -len(body) // 202]
    with capture_logs() as logs:
        with server.connect() as connection:
            fields = {"Transfer_Encoding": "chunked", "Idempotency_Key": "once"}
            connection.sendall(head("/v1/batches", **fields) + chunk(half))
        wait_until(lambda: logs)
    assert half.count(b"\n") == 100
    assert [entry["log_level"] for entry in logs] == ["info"]
    assert "went away" in logs[0]["event"]
    quiet()
    with server.connect() as connection:
        fields["Connection"] = "close"
        connection.sendall(head("/v1/batches", **fields) + chunk(body) + LAST_CHUNK)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 202 ")
    assert b'"total":101' in answer


@pytest.mark.parametrize("path", ["/v1/audits", "/v1/batches"])
def test_clients_that_go_away_cost_one_line_each(server, quiet, wait_until, path):
    kind = "application/json" if path == "/v1/audits" else "application/jsonl"
    with capture_logs() as logs:
        for _ in range(100):
            with server.connect() as connection:
                connection.sendall(head(path, kind=kind, Content_Length=1000) + b"0123456789")
        wait_until(lambda: len(logs) >= 100)
        with server.connect() as connection:
            connection.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")
        # An answer is logged once it has been sent.
        wait_until(lambda: any("status" in entry for entry in logs))
    gone = [entry for entry in logs if "went away" in entry["event"]]
    assert len(gone) == 100
    assert {entry["log_level"] for entry in logs} == {"info"}
    assert [entry["status"] for entry in logs if "status" in entry] == [200]
    quiet()


def test_a_body_without_end_is_stopped_at_the_limit(make_server, stored):
    server = make_server(max_body_bytes=1000)
    with server.connect() as connection:
        fields = {"kind": "application/json", "Transfer_Encoding": "chunked"}
        connection.sendall(head("/v1/audits", **fields))
        for _ in range(100):
            connection.sendall(chunk(b" " * 10))
        connection.sendall(chunk(b"x"))
        # It answers although the body goes on, and then closes.
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer
    assert b"more than 1,000 bytes (HALLDETECT_MAX_BODY_BYTES)" in answer
    assert stored("audits") == 0


def test_a_body_that_its_length_cuts_off_is_not_taken_for_whole(server, quiet, record, jsonl):
    for path, kind, body in (
        ("/v1/audits", "application/json", json.dumps(record("a")).encode()),
        ("/v1/batches", "application/jsonl", jsonl(record("a"), record("b")).rstrip()),
    ):
        with server.connect() as connection:
            fields = {"Content_Length": len(body) - 1, "Connection": "close"}
            connection.sendall(head(path, kind=kind, **fields) + body)
            assert connection.recv(1000).startswith(b"HTTP/1.1 422 ")
    quiet()


def test_a_large_refused_upload_gets_its_answer(server, stored):
    """The client is still sending when it is refused; closing at once would reset it."""
    body = b"x" * (8 << 20)
    with server.connect() as connection:
        connection.sendall(head("/v1/batches?policy=none", Content_Length=2 * len(body)) + body)
        connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert b"'none'" in answer
    assert stored("batches") == 0


def test_a_reader_that_leaves_in_the_middle_holds_nothing(server, record, jsonl, pool, wait_until):
    lines = jsonl(*(record(str(number), response="x" * 50_000) for number in range(200)))
    with server.connect() as connection:
        fields = {"Content_Length": len(lines), "Connection": "close"}
        connection.sendall(head("/v1/batches", **fields) + lines)
        assert read_all(connection).startswith(b"HTTP/1.1 202 ")
    with capture_logs() as logs:
        with server.connect() as connection:
            connection.sendall(b"GET /v1/batches/1/results HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: logs)
    assert [entry["log_level"] for entry in logs] == ["info"]
    wait_until(lambda: pool.checkedout() == 0)


def test_pretty_printed_json_is_read_and_a_path_cannot_forge_a_log_entry(server, wait_until):
    body = json.dumps({"source": "A.", "response": "B."}, indent=2).encode()
    with capture_logs() as logs, server.connect() as connection:
        connection.sendall(
            head("/v1/audits", kind="application/json", Content_Length=len(body)) + body
        )
        answer = connection.recv(1000)
        while not answer.endswith(b"}"):  # head and body may come one after the other
            answer += connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 202 ")
        connection.sendall(
            b"GET /x%0A%7B%22event%22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        with suppress(ConnectionResetError):
            assert read_all(connection).startswith(b"HTTP/1.1 404 ")
        wait_until(lambda: sum(entry["event"] == "request" for entry in logs) == 2)
    assert logs[-1]["path"] == '/x\n{"event"'
    assert "\n" not in json.dumps(logs[-1])
