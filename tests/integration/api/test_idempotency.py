"""Requests with an Idempotency-Key: one submission, however often they are sent."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from api_process import ApiProcess
from sqlalchemy import text

JSONL = {"Content-Type": "application/jsonl"}
TEXTS = {"source": "The mill closed in 1998.", "response": "The mill closed."}


@pytest.fixture
def submit(client):
    def send(key="k", body=TEXTS, path="/v1/audits"):
        return client.post(path, json=body, headers={"Idempotency-Key": key})

    return send


def test_the_first_answer_is_replayed(submit, stored):
    first, second = submit(), submit()
    assert (first.status_code, second.status_code) == (202, 202)
    assert second.content == first.content
    for name in ("Location", "Content-Type"):
        assert second.headers[name] == first.headers[name]
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert stored("audits") == 1


def test_a_batch_is_replayed_and_its_query_counts(client, record, jsonl, stored, redis_url):
    headers = {**JSONL, "Idempotency-Key": "k"}

    def send(body, **options):
        return client.post("/v1/batches", content=body, headers=headers, params=options)

    first, second = send(jsonl(record("a"))), send(jsonl(record("a")))
    assert second.content == first.content
    assert second.headers["Idempotency-Replayed"] == "true"
    assert send(jsonl(record("b"))).json()["type"].endswith("idempotency-key-reused")
    assert send(jsonl(record("a")), priority=1).status_code == 422
    assert stored("batches") == 1


def test_another_body_or_address_is_refused(submit, client, jsonl, stored):
    submit()
    headers = {**JSONL, "Idempotency-Key": "k"}
    for other in (
        submit(body={**TEXTS, "response": "x"}),
        client.post("/v1/batches", content=jsonl(TEXTS), headers=headers),
    ):
        assert other.status_code == 422
        assert other.json()["type"] == "urn:halldetect:problem:idempotency-key-reused"
    assert (stored("audits"), stored("batches")) == (1, 0)


def test_without_a_key_every_request_counts(client, stored):
    for _ in range(2):
        client.post("/v1/audits", json=TEXTS)
    assert stored("audits") == 2


def test_a_refused_request_leaves_its_key_free(submit, stored):
    assert submit(body={"source": "A."}).status_code == 422
    assert submit(body={**TEXTS, "policy": "none"}).status_code == 422
    assert submit().status_code == 202
    assert stored("audits") == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\xe9", "a\tb", "a\x7f"])
def test_keys_are_printable_and_short(client, key, stored):
    headers = {"Idempotency-Key": key.encode("latin-1")}
    answer = client.post("/v1/audits", json=TEXTS, headers=headers)
    assert answer.status_code == 422
    assert "Idempotency-Key" in answer.json()["detail"]
    assert stored("audits") == 0


def test_two_keys_are_refused(client):
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert client.post("/v1/audits", json=TEXTS, headers=headers).status_code == 422


def test_twenty_at_once_store_one(submit, stored):
    barrier = threading.Barrier(20)

    def send(_):
        barrier.wait()
        return submit()

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(send, range(20)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    accepted = {answer.content for answer in answers if answer.status_code == 202}
    assert len(accepted) == 1
    for answer in answers:
        if answer.status_code == 409:
            assert int(answer.headers["Retry-After"]) > 0
    assert stored("audits") == 1
    assert submit().content in accepted


def test_a_running_request_holds_its_key(submit, sessions, stored):
    with sessions.begin() as other:
        other.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('k', 0))"))
        answer = submit()
        assert answer.status_code == 409
        assert answer.json()["type"] == "urn:halldetect:problem:idempotency-key-in-progress"
        assert submit(key="other").status_code == 202
    assert submit().status_code == 202
    assert stored("audits") == 2


@pytest.fixture
def start_api(database, redis_url, tmp_path):
    processes = []

    def start():
        processes.append(ApiProcess(tmp_path, database, redis_url))
        processes[-1].wait_until_it_answers()
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


def test_a_server_that_is_killed_before_it_answers_leaves_nothing_behind(
    start_api, sessions, stored, wait_until
):
    def send(api):
        return httpx.post(
            f"{api.url}/v1/audits", json=TEXTS, headers={"Idempotency-Key": "k"}, timeout=60
        )

    def blocked():
        with sessions() as session:
            return session.scalar(
                text(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
            )

    api = start_api()
    with ThreadPoolExecutor(1) as pool, sessions.begin() as other:
        # The audit is inserted, and its answer is not: the key cannot be written.
        other.execute(text("LOCK TABLE halldetect.idempotency_keys IN SHARE MODE"))
        request = pool.submit(send, api)
        wait_until(lambda: blocked() == 1)
        api.kill()
        with pytest.raises(httpx.TransportError):
            request.result()
    api = start_api()
    wait_until(lambda: send(api).status_code == 202)
    assert stored("audits") == 1
    assert send(api).headers["Idempotency-Replayed"] == "true"
