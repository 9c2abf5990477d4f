"""Webhooks over HTTP: made, listed with their deliveries, deleted, refused."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic_core import to_json
from sqlalchemy import text
from structlog.testing import capture_logs

from db.batches import batch_state
from db.webhook_secrets import MOST_SECRETS
from db.webhooks import LISTED_DELIVERIES, MOST_WEBHOOKS

URL = "https://hooks.example.org/T0/B1?token=of-the-receiver"


@pytest.fixture
def add(client):
    def make(url=URL, **options):
        return client.post("/v1/webhooks", json={"url": url}, **options)

    return make


def listed(client, **query):
    return client.get("/v1/webhooks", params=query).json()


def test_a_webhook_is_made_and_its_secret_shown_once(client, add):
    with capture_logs() as logs:
        answer = add()
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    made = answer.json()
    assert set(made) == {"id", "url", "created_at", "secret"}
    kind, _, secret = made["secret"].partition("_")
    assert kind == "whsec"
    assert len(base64.b64decode(secret)) == 32
    [item] = listed(client)["items"]
    assert {**item, "secret": made["secret"]} == {
        **made,
        "older_secrets_until": None,
        "deliveries": [],
    }
    assert secret not in json.dumps(logs, default=repr)
    assert "token" not in json.dumps(logs, default=repr)
    assert add().json()["secret"] != made["secret"]


@pytest.fixture
def rotate(client):
    def run(number, **body):
        return client.post(f"/v1/webhooks/{number}/rotate", json=body)

    return run


def test_a_secret_is_replaced_and_the_new_one_shown_once(client, add, rotate):
    made = add().json()
    with capture_logs() as logs:
        answer = rotate(made["id"], overlap_seconds=3600)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    rotated = answer.json()
    assert set(rotated) == {"id", "secret", "older_secrets_until"}
    assert rotated["id"] == made["id"]
    assert rotated["secret"].startswith("whsec_")
    assert len(base64.b64decode(rotated["secret"].removeprefix("whsec_"))) == 32
    assert rotated["secret"] != made["secret"]
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    until = datetime.fromisoformat(rotated["older_secrets_until"])
    assert in_an_hour - timedelta(minutes=10) < until < in_an_hour + timedelta(minutes=10)
    [item] = listed(client)["items"]
    assert item["older_secrets_until"] == rotated["older_secrets_until"]
    told = json.dumps(logs, default=repr) + json.dumps(item)
    assert rotated["secret"].removeprefix("whsec_") not in told


def test_without_more_the_old_secret_signs_for_a_day_too(add, rotate):
    until = datetime.fromisoformat(rotate(add().json()["id"]).json()["older_secrets_until"])
    assert abs(until - datetime.now(UTC) - timedelta(days=1)) < timedelta(minutes=10)


def test_secrets_are_replaced_so_often_and_no_more(add, rotate):
    number = add().json()["id"]
    statuses = [rotate(number).status_code for _ in range(MOST_SECRETS)]
    assert statuses == [200] * (MOST_SECRETS - 1) + [409]
    refused = rotate(number).json()
    assert refused["type"] == "urn:halldetect:problem:too-many-secrets"
    assert rotate(number, overlap_seconds=0).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"overlap_seconds": -1},
        {"overlap_seconds": 366 * 24 * 3600},
        {"overlap_seconds": 1.5},
        {"overlap_seconds": "60"},
        {"overlap": 60},
    ],
)
def test_overlaps_that_are_none_are_refused(add, rotate, body):
    answer = rotate(add().json()["id"], **body)
    assert answer.status_code == 422
    assert "overlap" in answer.json()["detail"]


def test_a_webhook_that_is_not_there_is_not_rotated(rotate):
    assert rotate(99).status_code == 404


def test_a_webhook_that_is_deleted_is_not_there(client, add, stored):
    number = add().json()["id"]
    other = add().json()["id"]
    answer = client.delete(f"/v1/webhooks/{number}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert [item["id"] for item in listed(client)["items"]] == [other]
    again = client.delete(f"/v1/webhooks/{number}")
    assert again.status_code == 404
    assert again.json()["detail"] == f"there is no webhook {number}"
    assert stored("webhooks") == 1


def test_deliveries_are_listed_with_their_state(client, add, upload, record, execute):
    add()
    batches = [upload(record(f"r{number}")).json()["id"] for number in range(3)]
    execute(
        "UPDATE halldetect.webhook_deliveries SET state = 'due', due_since = now(), attempts = 2,"
        " next_attempt_at = '2026-03-01', last_attempt_at = '2026-02-28', last_status = 503,"
        " last_error = 'it answered 503' WHERE batch_id = :id",
        id=int(batches[1]),
    )
    [item] = listed(client)["items"]
    assert [one["batch_id"] for one in item["deliveries"]] == batches[::-1]
    assert [one["state"] for one in item["deliveries"]] == ["waiting", "due", "waiting"]
    due = item["deliveries"][1]
    assert due.pop("id").startswith("msg_")
    assert due == {
        "batch_id": batches[1],
        "state": "due",
        "attempts": 2,
        "next_attempt_at": "2026-03-01T00:00:00Z",
        "last_attempt_at": "2026-02-28T00:00:00Z",
        "last_status": 503,
        "last_error": "it answered 503",
        "finished_at": None,
    }


def test_only_the_last_deliveries_of_each_are_listed(client, add, upload, record):
    add()
    add()
    for number in range(LISTED_DELIVERIES + 2):
        last = upload(record(f"r{number}")).json()["id"]
    for item in listed(client)["items"]:
        assert len(item["deliveries"]) == LISTED_DELIVERIES
        assert item["deliveries"][0]["batch_id"] == last


def test_a_batch_that_is_refused_leaves_no_delivery(client, add, upload, record, stored):
    add()
    assert upload(record("a"), b"{").status_code == 422
    assert stored("webhook_deliveries") == 0
    upload(record("a"))
    assert stored("webhook_deliveries") == 1


def test_what_is_told_of_a_batch_is_what_the_api_answers(client, upload, record, sessions):
    number = upload(record("a"), record("b")).json()["id"]
    client.post(f"/v1/batches/{number}/cancel")
    with sessions.begin() as session:
        document = batch_state(session, int(number)).document()
    answered = client.get(f"/v1/batches/{number}").json()
    assert json.loads(to_json(document)) == answered


def test_pages_hold_all_newest_first(client, add):
    made = [add().json()["id"] for _ in range(5)]
    first = listed(client, limit=2)
    second = listed(client, limit=2, cursor=first["next_cursor"])
    third = listed(client, limit=2, cursor=second["next_cursor"])
    ids = [item["id"] for page in (first, second, third) for item in page["items"]]
    assert ids == made[::-1]
    assert third["next_cursor"] is None


def test_an_owner_has_so_many_and_no_more(client, add, stored):
    answers = [add() for _ in range(MOST_WEBHOOKS + 1)]
    assert [answer.status_code for answer in answers] == [201] * MOST_WEBHOOKS + [409]
    assert answers[-1].json()["type"] == "urn:halldetect:problem:too-many-webhooks"
    assert "delete one" in answers[-1].json()["detail"]
    assert stored("webhooks") == MOST_WEBHOOKS


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/secret-path",
        "https://localhost/secret-path",
        "https://127.0.0.1/secret-path",
        "https://169.254.169.254/secret-path",
        "https://[::1]/secret-path",
        "https://[::ffff:10.0.0.1]/secret-path",
        "https://0x7f000001/secret-path",
        "https://user:secret-path@hooks.example.org/",
        "secret-path",
        "",
    ],
)
def test_addresses_that_must_not_be_called_are_refused(client, add, stored, url):
    answer = add(url)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("url: ")
    assert "secret-path" not in answer.text
    assert stored("webhooks") == 0


@pytest.mark.parametrize("body", ["{}", '{"url": 1}', '{"url": "https://a.example", "b": 1}', "[]"])
def test_bodies_that_are_none_are_refused(client, body):
    answer = client.post("/v1/webhooks", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422


def test_a_url_that_is_too_long_is_refused_without_quoting_it(add):
    answer = add("https://hooks.example.org/" + "a" * 3000)
    assert answer.status_code == 422
    assert "2048" in answer.text
    assert "aaaa" not in answer.text


def test_what_the_setting_lists_is_allowed(make_client):
    client = make_client(webhook_allowed_hosts="10.0.0.0/8, hooks.internal")
    for url, status in (
        ("http://10.1.2.3:8080/x", 201),
        ("http://hooks.internal/x", 201),
        ("https://hooks.example.org/", 201),
        ("http://192.168.0.1/", 422),
    ):
        assert client.post("/v1/webhooks", json={"url": url}).status_code == status, url


def test_secrets_are_stored_and_no_reader_sees_them(add, sessions):
    secret = base64.b64decode(add().json()["secret"].removeprefix("whsec_"))
    with sessions.begin() as session:
        assert session.scalar(text("SELECT secret FROM halldetect.webhook_secrets")) == secret
        session.execute(text("SET LOCAL ROLE halldetect_reader"))
        views = session.scalars(
            text("SELECT string_agg(pg_get_viewdef(oid), '') FROM pg_class WHERE relkind = 'v'")
        ).one()
    assert "webhook" not in views


@pytest.mark.parametrize(
    ("number", "detail"),
    [
        ("x", "there is no webhook of this id: ids are whole numbers from 1"),
        ("017", "ids are whole numbers from 1"),
        ("9223372036854775807", "there is no webhook 9223372036854775807"),
        ("9223372036854775808", "there is no webhook of this id: ids end at 9223372036854775807"),
        ("9" * 20, "ids end at 9223372036854775807"),
    ],
)
def test_an_id_of_nothing_is_not_found(client, number, detail):
    answer = client.delete(f"/v1/webhooks/{number}")
    assert answer.status_code == 404
    assert detail in answer.json()["detail"]
