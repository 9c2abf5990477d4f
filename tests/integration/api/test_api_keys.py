"""Who is let in, for what, and whose things they see: on every route that there is."""

from __future__ import annotations

import hmac
import json
import re

import pytest
from fastapi.routing import iter_route_contexts
from rescored_audits import rescorer
from starlette.testclient import TestClient
from stored_audits import complete_waiting
from structlog.testing import capture_logs

from api.app import create_app
from db.api_keys import create_key, revoke_key
from db.scopes import Scope
from halldetect.settings import load_settings

OPEN = {("GET", path) for path in ("/", "/docs", "/healthz", "/readyz", "/openapi.json")}
NEEDED = {
    ("POST", "/v1/audits"): Scope.SUBMIT,
    ("GET", "/v1/audits"): Scope.READ,
    ("GET", "/v1/audits/{audit_id}"): Scope.READ,
    ("POST", "/v1/batches"): Scope.SUBMIT,
    ("GET", "/v1/batches"): Scope.READ,
    ("GET", "/v1/batches/{batch_id}"): Scope.READ,
    ("GET", "/v1/batches/{batch_id}/results"): Scope.READ,
    ("POST", "/v1/batches/{batch_id}/cancel"): Scope.SUBMIT,
    ("POST", "/v1/batches/{batch_id}/retry"): Scope.SUBMIT,
    ("POST", "/v1/audits/{audit_id}/retry"): Scope.SUBMIT,
    ("GET", "/metrics"): Scope.ADMIN,
    ("GET", "/v1/batches/{batch_id}/flagged-claims"): Scope.READ,
    ("GET", "/v1/batches/{batch_id}/review-summary"): Scope.READ,
    ("POST", "/v1/claims/{claim_id}/reviews"): Scope.REVIEW,
    ("GET", "/v1/claims/{claim_id}/reviews"): Scope.READ,
    ("GET", "/v1/reviews/{review_id}"): Scope.READ,
    ("POST", "/v1/policies"): Scope.ADMIN,
    ("GET", "/v1/policies"): Scope.READ,
    ("GET", "/v1/policies/{name}"): Scope.READ,
    ("POST", "/v1/scorings"): Scope.SUBMIT,
    ("GET", "/v1/scorings/{scoring_id}"): Scope.READ,
    ("GET", "/v1/scorings/{scoring_id}/comparison"): Scope.READ,
    ("POST", "/v1/webhooks"): Scope.SUBMIT,
    ("GET", "/v1/webhooks"): Scope.READ,
    ("POST", "/v1/webhooks/{webhook_id}/rotate"): Scope.SUBMIT,
    ("DELETE", "/v1/webhooks/{webhook_id}"): Scope.SUBMIT,
}
BY_ID = sorted(route for route in NEEDED if "_id}" in route[1])
TEXTS = {
    "source": "The mill opened in 1900. It closed in 1950 after a fire.",
    "response": "The mill opened in 1900. A dragon lives in it.",
}
JSONL = {"Content-Type": "application/jsonl"}


def routes():
    """List every method and path that the application answers."""
    settings = load_settings(
        database_url="postgresql://nobody@127.0.0.1:1/none", redis_url="redis://127.0.0.1:1/0"
    )
    for route in iter_route_contexts(create_app(settings).routes):
        for method in (getattr(route, "methods", None) or set()) - {"HEAD"}:
            yield method, route.path


@pytest.fixture
def client(make_client):
    """The application with keys in force."""
    return make_client(api_keys_required=True)


@pytest.fixture
def new_key(sessions):
    """Make a key; return its id and its secret."""

    def make(*scopes, name="a"):
        with sessions.begin() as session:
            key, secret = create_key(session, name, scopes)
        return key.id, secret

    return make


@pytest.fixture
def key(new_key):
    """Make a key and return the header that it is sent in."""
    return lambda *scopes: bearer(new_key(*scopes)[1])


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


USER = (Scope.SUBMIT, Scope.READ, Scope.REVIEW)


@pytest.fixture
def owned(client, key, sessions, engine, auditor):
    """What one key has: a batch with a reviewed claim, and a rescoring; with its header."""
    owner = key(*USER)
    batch = client.post(
        "/v1/batches", content=json.dumps(TEXTS) + "\n", headers={**JSONL, **owner}
    ).json()["id"]
    complete_waiting(sessions, auditor)
    audit = client.get("/v1/audits", headers=owner).json()["items"][0]["id"]
    claim = client.get(f"/v1/audits/{audit}", headers=owner).json()["claims"][1]["id"]
    review = client.post(
        f"/v1/claims/{claim}/reviews",
        json={"reviewer": "ada", "verdict": "supported"},
        headers=owner,
    ).json()["id"]
    scoring = client.post(
        "/v1/scorings", json={"policy": "paper", "selection": {}}, headers=owner
    ).json()["id"]
    rescorer(engine).run(int(scoring))
    webhook = new_webhook(client, owner)
    ids = {
        "batch_id": batch,
        "audit_id": audit,
        "claim_id": claim,
        "review_id": review,
        "scoring_id": scoring,
        "webhook_id": webhook,
    }
    return owner, ids


def new_webhook(client, headers):
    """Make a webhook and return its id."""
    body = {"url": "https://hooks.example.org"}
    return client.post("/v1/webhooks", json=body, headers=headers).json()["id"]


def send(client, method, path, ids, headers):
    """Send a request that is in order but for who sends it."""
    query = {"reviewer": "bob"} if path.endswith("flagged-claims") else {}
    body = None
    if path.endswith("/reviews") and method == "POST":
        body = {"reviewer": "bob", "verdict": "supported"}
    if path.endswith("/rotate"):
        body = {}
    return client.request(method, path.format(**ids), params=query, json=body, headers=headers)


def test_every_route_is_open_on_purpose_or_has_a_scope():
    assert set(routes()) == OPEN | set(NEEDED)


@pytest.mark.parametrize("route", sorted(OPEN))
def test_open_routes_ask_for_nothing(client, route):
    assert client.request(*route).status_code == 200


@pytest.mark.parametrize("route", sorted(NEEDED))
def test_each_route_wants_its_scope_and_nothing_else(client, key, stored, route):
    method, path = route
    address = re.sub(r"{\w+}", "1", path)
    for scope in Scope:
        answer = client.request(method, address, headers=key(scope))
        if scope in (NEEDED[route], Scope.ADMIN):
            assert answer.status_code in (200, 404, 415, 422), scope
            continue
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (403, "urn:halldetect:problem:forbidden")
        assert f"lacks the scope '{NEEDED[route]}'" in problem["detail"]
        assert f"it has: {scope}" in problem["detail"]
        assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("route", sorted(NEEDED))
def test_strangers_learn_nothing_on_any_route(client, new_key, sessions, route):
    method, path = route
    key_id, revoked = new_key(Scope.ADMIN)
    with sessions.begin() as session:
        revoke_key(session, key_id)
    _, valid = new_key(Scope.ADMIN)
    for authorization in (
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {valid}",
        valid,
        f"Bearer {valid[:-1]}",
        f"Bearer {valid}x",
        f"Bearer {valid.upper()}",
        "Bearer hd_" + "a" * 43,
        "Bearer caf\xe9\xff".encode("latin-1"),
        f"Bearer {revoked}",
    ):
        headers = {} if authorization is None else {"Authorization": authorization}
        # Not even the query, the path and the kind of the body are looked at.
        answer = client.request(
            method, re.sub(r"{\w+}", "x", path), params={"a": "b"}, content=b"{", headers=headers
        )
        assert answer.status_code == 401, authorization
        assert answer.json()["type"] == "urn:halldetect:problem:unauthorized"
        assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="halldetect"')


def test_reasons_tell_what_to_do(client, new_key, sessions):
    def reason(headers):
        return client.get("/v1/audits", headers=headers).json()["detail"]

    key_id, secret = new_key(Scope.READ)
    assert "Authorization: Bearer hd_" in reason({})
    assert "no API key of this service" in reason(bearer("hd_nobody"))
    assert client.get("/v1/audits", headers=bearer(secret)).status_code == 200
    with sessions.begin() as session:
        revoke_key(session, key_id)
    assert "was revoked on 2" in reason(bearer(secret))


def test_secrets_are_compared_in_constant_time(client, new_key, monkeypatch):
    _, secret = new_key(Scope.READ)
    compared = []

    def compare(left, right):
        compared.append((left, right))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert client.get("/v1/audits", headers=bearer(secret)).status_code == 401
    [(left, right)] = compared
    assert left == right
    assert len(left) == 32
    client.get("/v1/audits", headers=bearer("hd_nobody"))
    assert len(compared) == 2  # as much work for a stranger


@pytest.mark.parametrize("route", BY_ID)
def test_what_belongs_to_another_key_is_not_there(client, key, owned, route):
    owner, ids = owned
    stranger = key(*USER)
    nowhere = dict.fromkeys(ids, "999999")
    refused = send(client, *route, ids, stranger)
    unknown = send(client, *route, nowhere, stranger)
    assert refused.status_code == unknown.status_code == 404
    number = next(ids[name] for name in ids if name in route[1])
    assert refused.json()["detail"] == unknown.json()["detail"].replace("999999", number)
    for allowed in (owner, key(Scope.ADMIN)):
        answer = send(client, *route, ids, allowed)
        if route[0] == "DELETE":
            assert answer.status_code == 204
            ids = {**ids, "webhook_id": new_webhook(client, owner)}  # for the next to delete
            continue
        retried = route[1].endswith("/retry")  # nothing of it has failed
        assert answer.status_code in ((409,) if retried else (200, 201)), answer.text


def test_cancelling_what_belongs_to_another_key_cancels_nothing(client, key):
    owner = key(*USER)
    line = json.dumps(TEXTS) + "\n"
    batch = client.post("/v1/batches", content=line, headers={**JSONL, **owner}).json()["id"]
    assert client.post(f"/v1/batches/{batch}/cancel", headers=key(*USER)).status_code == 404
    assert client.get(f"/v1/batches/{batch}", headers=owner).json()["waiting"] == 1


def test_lists_hold_ones_own(client, key, owned):
    owner, ids = owned
    stranger, admin = key(*USER), key(Scope.ADMIN)
    client.post("/v1/audits", json=TEXTS, headers=stranger)

    def listed(path, headers, **query):
        items = client.get(path, params=query, headers=headers).json()["items"]
        return [item["id"] for item in items]

    assert listed("/v1/audits", owner) == [ids["audit_id"]]
    assert listed("/v1/audits", stranger) == [str(int(ids["audit_id"]) + 1)]
    assert len(listed("/v1/audits", admin)) == 2
    assert listed("/v1/audits", stranger, batch_id=ids["batch_id"]) == []
    assert listed("/v1/batches", owner) == listed("/v1/batches", admin) == [ids["batch_id"]]
    assert listed("/v1/batches", stranger) == []
    assert listed("/v1/webhooks", owner) == listed("/v1/webhooks", admin) == [ids["webhook_id"]]
    assert listed("/v1/webhooks", stranger) == []


def test_rescorings_score_ones_own(client, key, owned, engine, sessions, auditor):
    owner, ids = owned
    stranger = key(*USER)
    # Turn by turn, so that no range of ids is one key's.
    for headers in (stranger, owner, stranger):
        client.post("/v1/audits", json=TEXTS, headers=headers)
    complete_waiting(sessions, auditor)

    def submit(headers, **selection):
        return client.post(
            "/v1/scorings", json={"policy": "mean", "selection": selection}, headers=headers
        )

    for selection in ({"ids": [ids["audit_id"]]}, {"batch_id": ids["batch_id"]}):
        answer = submit(stranger, **selection)
        assert answer.status_code == 422
        assert re.search(
            f"no completed audit has the id {ids['audit_id']}|no batch {ids['batch_id']}",
            answer.json()["detail"],
        )
    mine = submit(stranger)
    assert mine.json()["total"] == 2
    rescorer(engine).run(int(mine.json()["id"]))
    done = client.get(mine.headers["Location"], headers=stranger).json()
    assert (done["status"], done["scored"], done["total"]) == ("completed", 2, 2)
    report = client.get(f"{mine.headers['Location']}/comparison", headers=stranger).json()
    assert report["selected"] == report["compared"] == 2
    assert submit(key(Scope.ADMIN)).json()["total"] == 4


def test_what_was_submitted_without_a_key_is_for_administrators(make_client, client, key):
    audit = make_client().post("/v1/audits", json=TEXTS).json()["id"]
    assert client.get(f"/v1/audits/{audit}", headers=key(*USER)).status_code == 404
    assert client.get(f"/v1/audits/{audit}", headers=key(Scope.ADMIN)).status_code == 200


def test_reviews_stay_their_owners_when_the_audit_is_gone(client, key, owned, execute):
    owner, ids = owned
    stranger = key(*USER)
    execute("TRUNCATE halldetect.scorings, halldetect.claims")
    for path in ("/v1/reviews/{review_id}", "/v1/claims/{claim_id}/reviews"):
        assert client.get(path.format(**ids), headers=owner).status_code == 200
        assert client.get(path.format(**ids), headers=stranger).status_code == 404


def test_idempotency_keys_are_the_owners(client, key, stored):
    one, other = key(Scope.SUBMIT), key(Scope.SUBMIT)

    def submit(owner, **fields):
        return client.post(
            "/v1/audits", json={**TEXTS, **fields}, headers={**owner, "Idempotency-Key": "k"}
        )

    first = submit(one)
    assert submit(one).content == first.content
    assert submit(other, custom_id="mine").status_code == 202
    assert submit(other, custom_id="mine").headers["Idempotency-Replayed"] == "true"
    assert submit(other).json()["type"].endswith("idempotency-key-reused")
    assert stored("audits") == 2


def test_the_last_use_is_noted_once_a_minute(client, new_key, sessions, execute):
    key_id, secret = new_key(Scope.READ)

    def noted():
        client.get("/v1/audits", headers=bearer(secret))
        with sessions() as session:
            return (
                session.connection()
                .exec_driver_sql(
                    f"SELECT last_used_at, xmin::text FROM halldetect.api_keys WHERE id = {key_id}"
                )
                .one()
            )

    first = noted()
    assert first.last_used_at is not None
    assert noted() == first
    execute("UPDATE halldetect.api_keys SET last_used_at = now() - interval '61 seconds'")
    assert noted().last_used_at >= first.last_used_at


def test_no_secret_is_in_logs_answers_or_the_database(
    make_client, new_key, sessions, caplog, monkeypatch
):
    client = make_client(api_keys_required=True)
    key_id, secret = new_key(Scope.READ)
    caplog.set_level("DEBUG")

    def break_down(*_, **__):
        raise RuntimeError("a fault of ours")

    answers = []
    with capture_logs() as logs:
        for path in ("/v1/audits", "/v1/audits/99", "/v1/audits?a=b", "/v1/policies/x"):
            answers += [client.get(path, headers=bearer(text)) for text in (secret, secret + "x")]
        answers.append(client.post("/v1/audits", json=TEXTS, headers=bearer(secret)))
        monkeypatch.setattr("api.routes.audits.list_audits", break_down)
        broken = TestClient(client.app, raise_server_exceptions=False)
        answers.append(broken.get("/v1/audits", headers=bearer(secret)))
    assert [answer.status_code for answer in answers[-2:]] == [403, 500]
    seen = json.dumps(logs, default=repr) + caplog.text
    seen += "".join(f"{answer.headers}{answer.text}" for answer in answers)
    with sessions() as session:
        for table in ("api_keys", "api_key_secrets"):
            rows = session.connection().exec_driver_sql(f"SELECT * FROM halldetect.{table}")
            seen += str(rows.all())
    assert secret[3:-1] not in seen
    assert {entry.get("api_key_id") for entry in logs if entry["event"] == "request"} == {
        key_id,
        None,
    }


def test_without_a_database_nobody_is_let_in(redis_url):
    settings = load_settings(
        database_url="postgresql://nobody@127.0.0.1:1/none",
        redis_url=redis_url,
        api_keys_required=True,
    )
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        assert client.get("/v1/audits", headers=bearer("hd_a")).status_code == 503
        assert client.get("/v1/audits").status_code == 401


def test_on_loopback_nobody_is_asked_unless_the_setting_says_so(make_client):
    assert make_client().get("/v1/audits").status_code == 200
    assert make_client(api_keys_required=False).get("/v1/audits").status_code == 200
    assert make_client(api_keys_required=True).get("/v1/audits").status_code == 401


def test_elsewhere_everybody_is_asked_even_before_there_is_a_key(make_client, settings):
    assert make_client(api_host="0.0.0.0").get("/v1/audits").status_code == 401
    # As another ASGI server reports it, that was told to listen elsewhere.
    for address, status in (("192.0.2.7", 401), ("[2001:db8::1]", 401), ("127.0.0.1", 200)):
        with TestClient(create_app(settings()), base_url=f"http://{address}") as client:
            assert client.get("/v1/audits").status_code == status, address
