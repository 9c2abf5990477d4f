"""More than may wait is refused before it is stored, and taken in again when there is room."""

import threading

import pytest
from sqlalchemy import event

from api import back_pressure
from api.back_pressure import BackPressure
from api.problems import Problem
from db.api_keys import create_key
from db.backlog import count_waiting
from db.engine import DatabaseUnavailable
from db.scopes import Scope

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
    def fail(*_):
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


@pytest.fixture
def owners(sessions):
    """Make two keys; return the headers that they are sent in."""
    with sessions.begin() as session:
        made = [create_key(session, name, [Scope.SUBMIT, Scope.READ])[1] for name in "ab"]
    return [{"Authorization": f"Bearer {secret}"} for secret in made]


def refused_to_key(answer):
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (429, "urn:halldetect:problem:too-much-waiting")
    assert int(answer.headers["Retry-After"]) > 0
    assert "of this API key wait, and at most 2 may" in problem["detail"]
    assert "(HALLDETECT_MAX_WAITING_AUDITS_PER_KEY)" in problem["detail"]
    return True


def test_one_key_cannot_fill_the_line_for_all(make_client, owners, stored, jsonl, record):
    client = make_client(api_keys_required=True, max_waiting_audits_per_key=2)
    one, other = owners
    for _ in range(2):
        assert client.post("/v1/audits", json=TEXTS, headers=one).status_code == 202
    assert refused_to_key(client.post("/v1/audits", json=TEXTS, headers=one))
    batch = {"content": jsonl(record("a")), "headers": {**JSONL, **one}}
    assert refused_to_key(client.post("/v1/batches", **batch))
    assert client.post("/v1/audits", json=TEXTS, headers=other).status_code == 202
    large = {"content": jsonl(*map(record, "abc")), "headers": {**JSONL, **other}}
    answer = client.post("/v1/batches", **large)
    assert answer.status_code == 413
    assert "at most 2 of this API key may wait" in answer.json()["detail"]
    assert stored("audits") == 3


def test_what_a_key_had_waiting_before_the_start_counts_and_what_ended_does_not(
    make_client, owners, execute, counted_always
):
    one, other = owners
    for headers in (one, one, other):
        make_client(api_keys_required=True).post("/v1/audits", json=TEXTS, headers=headers)
    client = make_client(api_keys_required=True, max_waiting_audits_per_key=2)
    assert refused_to_key(client.post("/v1/audits", json=TEXTS, headers=one))
    execute(END)
    assert client.post("/v1/audits", json=TEXTS, headers=one).status_code == 202


def test_the_bound_on_all_holds_for_keys_too(make_client, owners):
    client = make_client(api_keys_required=True, max_waiting_audits=2, max_waiting_audits_per_key=2)
    for headers in owners:
        assert client.post("/v1/audits", json=TEXTS, headers=headers).status_code == 202
    assert refused(client.post("/v1/audits", json=TEXTS, headers=owners[0]))


def test_who_has_no_key_is_bounded_by_the_whole_alone(make_client):
    client = make_client(max_waiting_audits_per_key=1)
    for _ in range(3):
        assert client.post("/v1/audits", json=TEXTS).status_code == 202


def test_one_keys_share_is_counted_without_reading_the_others(sessions, owners, make_client):
    client = make_client(api_keys_required=True)
    client.post("/v1/audits", json=TEXTS, headers=owners[0])
    statements = []
    with sessions() as session:
        engine = session.get_bind()
        event.listen(engine, "before_cursor_execute", lambda *all: statements.append(all[2:4]))
        assert count_waiting(session, 5, 1) == 1
        assert count_waiting(session, 5, 2) == 0
        connection = session.connection()
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        # As after many executions, when the server no longer looks at the parameters.
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
        sql, parameters = statements[0]
        plan = connection.exec_driver_sql(f"EXPLAIN {sql}", parameters).scalars().all()
    assert "ix_audits_api_key_id_waiting" in "".join(plan)
