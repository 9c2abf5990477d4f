"""Keys that are used too often or guessed, and keys whose secrets change while they are in use."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest
from api_process import ApiProcess

from api import dependencies, keys
from api.request_rates import WRONG_KEYS_PER_MINUTE, RequestRates
from db.api_keys import create_key, revoke_key, rotate_key
from db.scopes import Scope

TEXTS = {"source": "The mill closed in 1998.", "response": "It closed."}
JSON = {"Content-Type": "application/json"}
DAY = timedelta(days=1)


@pytest.fixture
def new_key(sessions):
    """Make a key; return its id and its secret."""

    def make(*scopes):
        with sessions.begin() as session:
            key, secret = create_key(session, "a", scopes or [Scope.SUBMIT, Scope.READ])
        return key.id, secret

    return make


@pytest.fixture
def rotate(sessions):
    def run(key_id, overlap):
        with sessions.begin() as session:
            return rotate_key(session, key_id, overlap)[1]

    return run


@pytest.fixture
def count_lookups(monkeypatch):
    """Count how often the database is asked for a key."""
    asked = []
    find = keys.find_key

    def counted(session, secret):
        asked.append(secret)
        return find(session, secret)

    monkeypatch.setattr(keys, "find_key", counted)
    return lambda: len(asked)


@pytest.fixture
def time_stands_still(monkeypatch):
    """Let no token come back, however long the requests take."""
    monkeypatch.setattr(dependencies, "RequestRates", partial(RequestRates, clock=lambda: 1000.0))


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def listed(client, secret):
    return client.get("/v1/audits", headers=bearer(secret))


def refused(answer, text):
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["type"] == "urn:halldetect:problem:too-many-requests"
    assert text in answer.json()["detail"]
    return True


def test_a_key_that_is_used_too_often_is_refused_and_costs_no_query(
    make_client, new_key, count_lookups, time_stands_still
):
    client = make_client(api_keys_required=True, requests_per_minute=5)
    _, busy = new_key()
    _, other = new_key()
    for _ in range(5):
        assert listed(client, busy).status_code == 200
    before = count_lookups()
    for method, path in (("GET", "/v1/audits"), ("POST", "/v1/audits"), ("GET", "/metrics")):
        answer = client.request(method, path, headers=bearer(busy))
        assert refused(answer, "5 requests a minute (HALLDETECT_REQUESTS_PER_MINUTE)")
    assert count_lookups() == before
    assert listed(client, other).status_code == 200
    for path in ("/healthz", "/readyz", "/docs"):
        for _ in range(10):
            assert client.get(path, headers=bearer(busy)).status_code == 200


def test_a_night_of_polling_and_submitting_is_within_the_default(make_client, new_key):
    client = make_client(api_keys_required=True)
    _, secret = new_key()
    answers = {
        client.post("/v1/audits", json=TEXTS, headers=bearer(secret)).status_code
        for _ in range(200)
    }
    assert answers == {202}


def test_guesses_are_refused_before_the_database_is_asked(
    make_client, new_key, count_lookups, time_stands_still
):
    client = make_client(api_keys_required=True)
    _, known = new_key()
    _, unused = new_key()
    assert listed(client, known).status_code == 200
    guesses = [f"hd_{number}" for number in range(WRONG_KEYS_PER_MINUTE + 20)]
    answers = [listed(client, guess) for guess in guesses]
    assert [answer.status_code for answer in answers[:WRONG_KEYS_PER_MINUTE]] == [401] * 30
    assert all(refused(answer, "unknown API keys") for answer in answers[-10:])
    before = count_lookups()
    assert refused(listed(client, unused), "unknown API keys")
    assert count_lookups() == before
    # What is known goes on from the same address, and so does what sends no key at all.
    assert listed(client, known).status_code == 200
    assert client.get("/v1/audits").status_code == 401


def test_revoked_and_replaced_keys_are_no_guesses(make_client, new_key, sessions, rotate):
    client = make_client(api_keys_required=True)
    revoked_id, revoked = new_key()
    replaced_id, replaced = new_key()
    with sessions.begin() as session:
        revoke_key(session, revoked_id)
    rotate(replaced_id, timedelta(0))
    for _ in range(WRONG_KEYS_PER_MINUTE + 1):
        assert listed(client, revoked).status_code == 401
        assert listed(client, replaced).status_code == 401
    _, fresh = new_key()
    assert listed(client, fresh).status_code == 200


def test_where_no_key_is_asked_for_nobody_is_counted(make_client):
    client = make_client(requests_per_minute=1)
    for _ in range(5):
        assert listed(client, "hd_whatever").status_code == 200


def test_a_refused_body_is_not_read(tmp_path, database, redis_url, new_key):
    """The answer comes although the body does not."""
    _, secret = new_key()
    api = ApiProcess(tmp_path, database, redis_url, api_keys_required=True, requests_per_minute=1)
    try:
        api.wait_until_it_answers()
        assert api.request("GET", "/v1/audits", headers=bearer(secret))[0] == 200
        with api.connect() as connection:
            connection.sendall(
                b"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
                b"Content-Type: application/jsonl\r\nAuthorization: Bearer "
                + secret.encode()
                + b"\r\n\r\n"
            )
            answer = b""
            while data := connection.recv(65536):
                answer += data
    finally:
        api.stop()
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"connection: close" in answer
    assert b"retry-after: " in answer


def test_a_rotated_key_sees_what_it_submitted_with_either_secret(make_client, new_key, rotate):
    client = make_client(api_keys_required=True)
    key_id, old = new_key()
    repeated = {**bearer(old), "Idempotency-Key": "k"}
    first = client.post("/v1/audits", json=TEXTS, headers=repeated)
    new = rotate(key_id, DAY)
    for secret in (old, new):
        assert [item["id"] for item in listed(client, secret).json()["items"]] == ["1"]
    again = client.post("/v1/audits", json=TEXTS, headers={**repeated, **bearer(new)})
    assert again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    answer = client.post("/v1/policies", content=json.dumps({}), headers={**JSON, **bearer(new)})
    assert answer.status_code == 403  # its scopes are what they were


def test_a_replaced_secret_is_refused_from_the_next_request_on(make_client, new_key, rotate):
    client = make_client(api_keys_required=True)
    key_id, old = new_key()
    assert listed(client, old).status_code == 200
    new = rotate(key_id, timedelta(0))
    answer = listed(client, old)
    assert answer.status_code == 401
    assert "was replaced, and is not accepted since 2" in answer.json()["detail"]
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert listed(client, new).status_code == 200
