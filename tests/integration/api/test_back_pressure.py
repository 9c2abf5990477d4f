"""More than may wait is refused before it is stored, and taken in again when there is room."""

import threading

import pytest

from api import back_pressure
from api.back_pressure import BackPressure
from api.problems import Problem
from db.engine import DatabaseUnavailable

TEXTS = {"source": "The mill closed in 1998.", "response": "The mill closed."}
JSONL = {"Content-Type": "application/jsonl"}
END = "UPDATE halldetect.audits SET status = 'cancelled', finished_at = now() WHERE id = 1"


@pytest.fixture
def counted_always(monkeypatch):
    monkeypatch.setattr(back_pressure, "_SECONDS_BETWEEN_COUNTS", 0.0)
    monkeypatch.setattr(back_pressure, "_SHARE_OF_COUNTING", 0)


def refused(answer):
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) > 0
    problem = answer.json()
    assert problem["type"] == "urn:halldetect:problem:too-much-waiting"
    assert "at most 2 may (HALLDETECT_MAX_WAITING_AUDITS)" in problem["detail"]
    return True


def test_single_audits_are_refused_beyond_the_bound(make_client, stored):
    client = make_client(max_waiting_audits=2)
    for _ in range(2):
        assert client.post("/v1/audits", json=TEXTS).status_code == 202
    assert refused(client.post("/v1/audits", json=TEXTS))
    assert stored("audits") == 2
    assert client.get("/v1/audits").status_code == 200


def test_what_waited_before_the_start_counts(make_client, stored, execute):
    client = make_client()
    for _ in range(2):
        client.post("/v1/audits", json=TEXTS)
    execute(
        "UPDATE halldetect.audits SET status = 'extracted', extracted_at = now(), lease_owner ="
        " 'w', lease_expires_at = now() WHERE id = 2"
    )
    assert refused(make_client(max_waiting_audits=2).post("/v1/audits", json=TEXTS))


def test_a_batch_fits_as_a_whole_or_is_refused(make_client, stored, jsonl, record):
    client = make_client(max_waiting_audits=2)
    assert client.post("/v1/audits", json=TEXTS).status_code == 202
    lines = jsonl(record("a"), record("b"))
    assert refused(client.post("/v1/batches", content=lines, headers=JSONL))
    assert (stored("audits"), stored("batches")) == (1, 0)
    one = client.post("/v1/batches", content=jsonl(record("a")), headers=JSONL)
    assert one.status_code == 202
    assert refused(client.post("/v1/batches", content=lines, headers=JSONL))
    assert stored("audits") == 2


def test_a_batch_that_can_never_wait_is_too_large(make_client, stored, jsonl, record):
    client = make_client(max_waiting_audits=2)
    lines = jsonl(*(record(str(number)) for number in range(3)))
    answer = client.post("/v1/batches", content=lines, headers=JSONL)
    assert answer.status_code == 413
    assert "HALLDETECT_MAX_WAITING_AUDITS" in answer.json()["detail"]
    assert stored("audits") == 0


@pytest.mark.parametrize("path", ["/v1/audits", "/v1/batches"])
def test_a_repetition_gets_its_first_answer_however_much_waits(make_client, jsonl, record, path):
    client = make_client(max_waiting_audits=2)
    lines = jsonl(record("a"), record("b"))
    request = {"json": TEXTS} if path == "/v1/audits" else {"content": lines, "headers": JSONL}
    request["headers"] = {**request.get("headers", {}), "Idempotency-Key": "k"}
    first = client.post(path, **request)
    assert first.status_code == 202
    client.post("/v1/audits", json=TEXTS)
    assert refused(client.post("/v1/audits", json=TEXTS))
    again = client.post(path, **request)
    assert (again.status_code, again.content) == (202, first.content)


def test_when_there_is_room_again_audits_are_taken_in(make_client, execute, counted_always):
    client = make_client(max_waiting_audits=2)
    for _ in range(2):
        client.post("/v1/audits", json=TEXTS)
    assert refused(client.post("/v1/audits", json=TEXTS))
    execute(END)
    assert client.post("/v1/audits", json=TEXTS).status_code == 202
    assert refused(client.post("/v1/audits", json=TEXTS))


def test_nothing_is_counted_twice(make_client, execute, counted_always, jsonl, record):
    """An upload is not counted as waiting while it asks whether it may wait."""
    client = make_client(max_waiting_audits=2)
    lines = jsonl(record("a"), record("b"))
    assert client.post("/v1/batches", content=lines, headers=JSONL).status_code == 202


def test_a_count_that_fails_is_tried_again(sessions, monkeypatch):
    def fail(session, at_most):
        raise DatabaseUnavailable("gone")

    pressure = BackPressure(2)
    with sessions() as session:
        with monkeypatch.context() as patched:
            patched.setattr(back_pressure, "count_waiting", fail)
            for _ in range(2):
                with pytest.raises(DatabaseUnavailable):
                    pressure.look(session)
        pressure.look(session)
    pressure.admit(2)
    with pytest.raises(Problem):
        pressure.admit(1)


def test_of_many_at_once_no_more_than_the_bound_are_admitted(sessions, monkeypatch):
    monkeypatch.setattr(back_pressure, "_SECONDS_BETWEEN_COUNTS", 3600.0)
    pressure = BackPressure(50)
    admitted = []

    def ask():
        with sessions() as session:
            for _ in range(10):
                try:
                    pressure.look(session)
                    pressure.admit(1)
                except Problem:
                    continue
                admitted.append(1)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    more = [threading.Thread(target=ask) for _ in range(5)]
    for thread in (*threads, *more):
        thread.start()
    for thread in (*threads, *more):
        thread.join()
    assert len(admitted) == 50
