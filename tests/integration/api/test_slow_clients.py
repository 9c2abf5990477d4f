"""Slow clients of a real process: others get their answers, and nothing is held for them."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, suppress

import psycopg
import pytest
from api_process import ApiProcess, wait_until
from sqlalchemy.engine import make_url

from api.connections import MOST_CONNECTIONS

STALL_SECONDS = 2
RECORD = json.dumps({"source": "The mill closed in 1998.", "response": "It closed."}).encode()
JSON = {"Content-Type": "application/json"}
JSONL = {"Content-Type": "application/jsonl"}
HEAD = (
    "POST /v1/{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {type}\r\nContent-Length: {size}"
    "\r\n\r\n"
)


def head(what="audits", size=10_000):
    kind = "application/json" if what == "audits" else "application/jsonl"
    return HEAD.format(what=what, type=kind, size=size).encode()


@pytest.fixture(scope="module")
def database(module_database):
    """One for all of them: they count only what they send themselves."""
    return module_database


@pytest.fixture(scope="module")
def _processes(tmp_path_factory, database, _valkey):
    """Start an API that soon loses patience, and one that has all of it."""
    folder = tmp_path_factory.mktemp("api")
    with ExitStack() as stack:
        processes = [
            ApiProcess(folder, database, _valkey.url, **settings)
            for settings in ({"stalled_client_seconds": STALL_SECONDS}, {})
        ]
        for process in processes:
            stack.callback(process.stop)
        for process in processes:
            process.wait_until_it_answers()
        yield processes


@pytest.fixture
def api(_processes):
    yield _processes[0]
    wait_until(lambda: _processes[0].connections_held() == 0)


@pytest.fixture
def patient_api(_processes):
    yield _processes[1]
    wait_until(lambda: _processes[1].connections_held() == 0)


@pytest.fixture
def opened(api):
    """Open connections that are closed at the end."""
    with ExitStack() as stack:

        def many(number, **options):
            return [stack.enter_context(api.connect(**options)) for _ in range(number)]

        yield many


@pytest.fixture
def in_transaction(postgres, database):
    """Count the connections of the API to Postgres that are in a transaction."""
    name = make_url(database).database

    def count():
        with psycopg.connect(postgres.url) as connection:
            return connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state <> 'idle'",
                [name],
            ).fetchone()[0]

    return count


def answers_others(api):
    for method, path, body, headers, expected in (
        ("GET", "/healthz", None, {}, 200),
        ("GET", "/v1/audits", None, {}, 200),
        ("POST", "/v1/audits", RECORD, JSON, 202),
        ("POST", "/v1/batches", RECORD + b"\n", JSONL, 202),
    ):
        assert api.request(method, path, body, headers)[0] == expected


def read_all(connection):
    received = b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


class Pace:
    """Knows whether this process went on all the time.

    One that the system stopped for a while has not kept any pace, and may be cut off for it.
    """

    def __init__(self):
        self.is_kept = True
        self._last = time.monotonic()

    def note(self):
        """Say that something was done now."""
        now = time.monotonic()
        self.is_kept = self.is_kept and now - self._last < 0.75 * STALL_SECONDS
        self._last = now


def test_heads_that_never_end_are_cut_off(api, opened):
    before = len(api.entries_so_far("sent no whole request"))
    silent, begun = opened(20), opened(20)
    for connection in begun:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
    reused = opened(5)
    for connection in reused:  # a first request that is in order, and half of a second
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
    answers_others(api)
    for connection in (*silent, *begun):
        assert read_all(connection) == b""
    for connection in reused:
        assert read_all(connection).endswith(b'{"status":"ok"}')
    wait_until(lambda: len(api.entries("sent no whole request")) >= before + 45)
    assert len(api.entries("sent no whole request")) == before + 45


def test_one_byte_at_a_time_does_not_buy_more_time(api):
    """Nobody waits longer for a head that always goes on a little."""
    with api.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        ended = threading.Event()

        def drip():
            while not ended.wait(0.2):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert read_all(connection) == b""
        finally:
            ended.set()
            dripping.join()


@pytest.mark.parametrize("what", ["audits", "batches"])
def test_bodies_that_stall_are_refused_and_hold_no_thread(api, opened, in_transaction, what):
    stopped, dripping = opened(20), opened(20)
    for connection in (*stopped, *dripping):
        connection.sendall(head(what) + RECORD[:10])
    ended = threading.Event()

    def drip():
        while not ended.wait(0.2):
            for connection in dripping:
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        for _ in range(5):
            answers_others(api)
        wait_until(lambda: in_transaction() == 0)
        answers = [read_all(connection) for connection in (*stopped, *dripping)]
    finally:
        ended.set()
        thread.join()
    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"urn:halldetect:problem:too-slow" in answer
        assert b"HALLDETECT_STALLED_CLIENT_SECONDS" in answer
    assert [entry for entry in api.entries() if entry["level"] in ("warning", "error")] == []


def test_a_body_that_keeps_the_pace_is_taken_in_however_long_it_takes(api):
    """Over several periods, and with pauses in which nothing comes."""
    while (answer := answer_to_a_slow_body(api)) is None:
        pass
    assert answer.startswith(b"HTTP/1.1 202 ")


def answer_to_a_slow_body(api):
    """Return how an answer begins, or None if this process has not kept the pace."""
    pace, answer = Pace(), b""
    end = time.monotonic() + 4 * STALL_SECONDS
    with api.connect() as connection, suppress(ConnectionError):
        connection.sendall(
            b"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(b"%x\r\n%b\r\n" % (len(RECORD), RECORD))
        while time.monotonic() < end:
            connection.sendall(b"%x\r\n%b\r\n" % (20_000, b" " * 20_000))
            time.sleep(STALL_SECONDS / 5)
            pace.note()
        connection.sendall(b"0\r\n\r\n")
        pace.note()
        answer = connection.recv(100)
    if not answer:
        pace.note()
    return answer if pace.is_kept else None


@pytest.fixture
def results(api):
    """The address of ten megabytes of results, in a hundred lines."""
    lines = b"".join(
        json.dumps({"source": f"Mill {number}.", "response": "It closed. " * 9000}).encode() + b"\n"
        for number in range(100)
    )
    status, _, answer = api.request("POST", "/v1/batches", lines, JSONL)
    assert status == 202
    return f"/v1/batches/{json.loads(answer)['id']}/results"


def ask_for(connection, path):
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )


def test_a_reader_that_keeps_the_pace_gets_all_however_long_it_takes(api, results):
    while (read := read_slowly(api, results)) is None:
        pass
    slowly, received = read
    assert slowly < len(received) / 2
    assert received.count(b'"custom_id":null') == 100
    assert received.endswith(b"0\r\n\r\n")


def read_slowly(api, results):
    """Return how much came slowly, and all; or None if this process has not kept the pace."""
    received, slowly = b"", 0
    with api.connect(receive_buffer=4096) as reader, suppress(ConnectionError):
        ask_for(reader, results)
        received += reader.recv(20_000)
        pace = Pace()
        end = time.monotonic() + 4 * STALL_SECONDS
        while time.monotonic() < end:
            received += reader.recv(20_000)
            time.sleep(STALL_SECONDS / 20)
            pace.note()
        slowly = len(received)
        while data := reader.recv(65536):
            received += data
            pace.note()
    pace.note()
    return (slowly, received) if pace.is_kept else None


def test_readers_that_stall_are_cut_off_and_hold_nothing(api, opened, in_transaction, results):
    before = len(api.entries_so_far("did not read its answer"))
    readers = opened(20, receive_buffer=4096)
    for connection in readers:
        ask_for(connection, results)
    for connection in readers:
        assert connection.recv(12) == b"HTTP/1.1 200"
    for _ in range(5):
        answers_others(api)
    wait_until(lambda: in_transaction() == 0)
    wait_until(lambda: api.connections_held() == 0)
    wait_until(lambda: len(api.entries("did not read its answer")) >= before + 20)
    assert len(api.entries("did not read its answer")) == before + 20
    status, _, body = api.request("GET", results)
    assert (status, body.count(b"\n")) == (200, 100)


def test_answers_that_nobody_reads_are_not_kept_for_ever(api, opened):
    """Many small ones too, which never fill what uvicorn takes for a full buffer."""
    [reader] = opened(1, receive_buffer=4096)
    reader.settimeout(1)
    request = b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try:
        for _ in range(100_000):
            reader.sendall(request)
    except (TimeoutError, ConnectionError):
        pass
    wait_until(lambda: api.connections_held() == 0)
    answers_others(api)


def test_whoever_opens_connections_and_sends_nothing_locks_nobody_out(patient_api):
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS + 20):
            stack.enter_context(patient_api.connect())
        wait_until(lambda: patient_api.connections_held() == MOST_CONNECTIONS)
        answers_others(patient_api)


def test_more_requests_at_once_than_there_may_be_connections_are_refused(patient_api):
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            connection = stack.enter_context(patient_api.connect())
            connection.sendall(head())
        wait_until(lambda: patient_api.connections_held() == MOST_CONNECTIONS)
        status, headers, body = patient_api.request("GET", "/healthz")
        assert status == 503
        assert headers["Content-Type"] == "application/problem+json"
        assert int(headers["Retry-After"]) > 0
        assert b"500 connections" in body
    wait_until(lambda: patient_api.connections_held() == 0)
    answers_others(patient_api)
