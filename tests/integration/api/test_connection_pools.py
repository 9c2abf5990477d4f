"""The API's connections to Postgres: no more than documented, and none waited for for ever."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from api_process import ApiProcess
from sqlalchemy.engine import make_url

from api import dependencies
from api.dependencies import THREADS, UPLOADS
from db import engine as engines

OPERATIONS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"
TEXTS = json.dumps({"source": "The mill closed in 1998.", "response": "It closed."}).encode()
JSON = {"Content-Type": "application/json"}
JSONL = {"Content-Type": "application/jsonl"}
REQUESTS = [
    ("GET", "/v1/audits", None, {}),
    ("GET", "/v1/batches", None, {}),
    ("GET", "/v1/policies", None, {}),
    ("GET", "/metrics", None, {}),
    ("POST", "/v1/audits", TEXTS, JSON),
    ("POST", "/v1/batches", (TEXTS + b"\n") * 200, JSONL),
]
SHARED = ("SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name = %s",)


def documented():
    """Return how many connections docs/operations.md grants an API process."""
    found = re.search(r"API process opens at most (\d+) connections", OPERATIONS.read_text())
    return int(found[1])


def test_the_documented_number_is_the_pools():
    assert documented() == THREADS + UPLOADS


def test_under_parallel_load_there_are_never_more(
    tmp_path, database, redis_url, postgres, held_table, wait_until
):
    api = ApiProcess(tmp_path, database, redis_url)
    seen, done = [], threading.Event()
    name = make_url(database).database

    def watch():
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            while not done.is_set():
                count = connection.execute(*SHARED, [name, "halldetect"]).fetchone()[0]
                seen.append(count)

    try:
        api.wait_until_it_answers()
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            with ThreadPoolExecutor(40) as clients:
                requests = [clients.submit(api.request, *one) for one in REQUESTS * 40]
                wait_until(lambda: max(seen, default=0) > 5)  # they are at work together
                held_table.rollback()
                answers = {request.result()[0] for request in requests}
        finally:
            done.set()
            watcher.join()
    finally:
        api.stop()
    assert answers == {200, 202}
    assert max(seen) <= documented()


def test_a_full_pool_is_told_and_not_waited_for_without_end(make_client, monkeypatch):
    monkeypatch.setattr(engines, "_POOL_SECONDS", 0.1)
    client = make_client()
    engine = client.app.state.service.engine
    with ExitStack() as stack:
        for _ in range(THREADS + UPLOADS):
            stack.enter_context(engine.connect())
        for method, path, body, headers in REQUESTS:
            if path == "/metrics":
                continue  # it says what it can: the process's own figures
            answer = client.request(method, path, content=body, headers=headers)
            assert answer.status_code == 503, (method, path)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert int(answer.headers["Retry-After"]) > 0
        assert "halldetect_database_up 0.0" in client.get("/metrics").text
        assert client.get("/readyz").status_code == 503
    for method, path, body, headers in REQUESTS:
        assert client.request(method, path, content=body, headers=headers).status_code < 300


@pytest.fixture
def held_table(database):
    """Keep a table from everybody, as a migration does."""
    with psycopg.connect(database) as connection:
        connection.execute("LOCK TABLE halldetect.audits IN ACCESS EXCLUSIVE MODE")
        yield connection


def fetch(server, path):
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{server.address[1]}{path}", timeout=60
        ) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers


def test_a_lock_that_is_not_given_back_costs_no_thread_for_ever(
    make_server, held_table, monkeypatch
):
    monkeypatch.setattr(dependencies, "LOCK_SECONDS", 1)
    server = make_server()
    with ThreadPoolExecutor(THREADS * 2) as clients:
        answers = list(clients.map(lambda _: fetch(server, "/v1/audits"), range(THREADS * 2)))
    assert {status for status, _ in answers} == {503}
    assert all(int(headers["Retry-After"]) > 0 for _, headers in answers)
    held_table.rollback()
    assert fetch(server, "/v1/audits")[0] == 200


def test_it_lives_while_every_thread_waits(make_server, held_table, monkeypatch, wait_until):
    monkeypatch.setattr(dependencies, "LOCK_SECONDS", 3600)
    server = make_server()
    pool = server.app.state.service.engine.pool
    with ThreadPoolExecutor(THREADS) as clients:
        waiting = [clients.submit(fetch, server, "/v1/audits") for _ in range(THREADS)]
        wait_until(lambda: pool.checkedout() == THREADS)
        assert fetch(server, "/healthz")[0] == 200
        assert not any(one.done() for one in waiting)
        held_table.rollback()
        assert {one.result()[0] for one in waiting} == {200}


def test_an_upload_waits_for_another_of_the_same_sources(
    make_client, database, monkeypatch, wait_until, execute
):
    monkeypatch.setattr(dependencies, "LOCK_SECONDS", 1)
    client = make_client()
    with ExitStack() as stack:
        other = stack.enter_context(psycopg.connect(database))
        watcher = stack.enter_context(psycopg.connect(database, autocommit=True))
        other.execute("LOCK TABLE halldetect.documents IN SHARE ROW EXCLUSIVE MODE")
        clients = stack.enter_context(ThreadPoolExecutor(1))
        upload = clients.submit(client.post, "/v1/batches", content=TEXTS + b"\n", headers=JSONL)
        longer_than_a_request = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '2 seconds'"
        )
        wait_until(lambda: watcher.execute(longer_than_a_request).fetchone()[0] == 1)
        other.rollback()
        assert upload.result().status_code == 202
