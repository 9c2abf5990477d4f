"""How a batch is doing, what came out of it, and its end by cancellation."""

from __future__ import annotations

import json

import pytest

FINISH = (
    "UPDATE halldetect.audits SET status='failed', error='too long', finished_at=now()"
    " WHERE id = ANY(:ids)"
)
HOLD = (
    "UPDATE halldetect.audits SET lease_owner='w', lease_expires_at=now() + interval '1 hour',"
    " fencing_token=1 WHERE id = ANY(:ids)"
)


@pytest.fixture
def results(client):
    def read(batch_id=1):
        answer = client.get(f"/v1/batches/{batch_id}/results")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("application/jsonl")
        assert answer.content.endswith(b"\n")
        return [json.loads(line) for line in answer.content.split(b"\n")[:-1]]

    return read


def test_results_come_in_the_order_of_submission(client, upload, record, results, execute):
    texts = {str(number): f"Response {number}. " * (1 + number % 7) for number in range(350)}
    upload(*(record(name, response=text) for name, text in texts.items()))
    execute(FINISH, ids=[5, 300])
    found = results()
    assert [line["custom_id"] for line in found] == list(texts)
    assert [line["line"] for line in found] == list(range(1, 351))
    assert {line["custom_id"]: line["response"] for line in found} == texts
    assert [line["id"] for line in found if line["status"] == "failed"] == ["5", "300"]
    assert found[4]["error"] == "too long"
    assert {line["status"] for line in found} == {"failed", "queued"}


def test_results_of_two_batches_stay_apart(upload, record, results):
    upload(record("a"), record("b"))
    upload(record("a"))
    assert [line["batch_id"] for line in results(1)] == ["1", "1"]
    assert [line["id"] for line in results(2)] == ["3"]


def test_results_hold_no_connection_while_they_are_read(make_client, upload, record):
    client = make_client()
    pool = client.app.state.service.engine.pool
    upload(*(record(str(number), response="x" * 5_000) for number in range(200)))
    with client.stream("GET", "/v1/batches/1/results") as answer:
        pieces = answer.iter_raw()
        next(pieces)
        assert pool.checkedout() == 0
        rest = b"".join(pieces)
    assert rest
    assert pool.checkedout() == 0


def test_cancelling_keeps_what_is_finished_and_adds_up(client, upload, record, results, execute):
    upload(*(record(str(number)) for number in range(25)))
    execute(FINISH, ids=[1, 2, 3, 4, 5])
    execute(HOLD, ids=[6])
    before = client.get("/v1/batches/1").json()
    assert (before["status"], before["running"], before["waiting"]) == ("in_progress", 1, 20)
    answer = client.post("/v1/batches/1/cancel")
    assert answer.status_code == 200
    batch = answer.json()
    assert batch["status"] == "cancelled"
    assert batch["completed"] + batch["failed"] + batch["cancelled"] == 25
    assert (batch["failed"], batch["cancelled"], batch["waiting"], batch["running"]) == (
        5,
        20,
        0,
        0,
    )
    found = results()
    assert [line["custom_id"] for line in found] == [str(number) for number in range(25)]
    assert [line["status"] for line in found] == ["failed"] * 5 + ["cancelled"] * 20
    assert client.post("/v1/batches/1/cancel").json() == batch
    assert client.get("/v1/batches/1").json() == batch


def test_a_finished_batch_is_not_cancelled(client, upload, record, execute):
    upload(record("a"))
    execute(FINISH, ids=[1])
    batch = client.get("/v1/batches/1").json()
    assert (batch["status"], batch["waiting"]) == ("completed", 0)
    assert batch["finished_at"] is not None
    assert client.post("/v1/batches/1/cancel").json()["status"] == "completed"


def test_unknown_batches_cannot_be_cancelled(client):
    for number in ("1", "0", "x", str(2**63)):
        assert client.post(f"/v1/batches/{number}/cancel").status_code == 404


def test_every_count_is_there(client, upload, record):
    upload(record("a"))
    batch = client.get("/v1/batches/1").json()
    parts = ("completed", "failed", "cancelled", "waiting")
    assert batch["total"] == sum(batch[part] for part in parts)
    assert batch["waiting"] == batch["queued"] + batch["extracted"]
    for name in ("hallucinated", "faithful", "no_checkable_claims", "supported"):
        assert batch[name] == 0


def test_policies_are_listed_and_read(client):
    items = client.get("/v1/policies").json()["items"]
    assert [item["name"] for item in items] == ["embedded", "mean", "paper", "row-max"]
    paper = client.get("/v1/policies/paper").json()
    assert paper in items
    assert paper["rules"]["aggregation"] == "fedscore"
    for name in ("none", "a%00b", "%FF"):
        assert client.get(f"/v1/policies/{name}").status_code == 404
    assert client.get("/v1/policies", params={"nam": "x"}).status_code == 422
