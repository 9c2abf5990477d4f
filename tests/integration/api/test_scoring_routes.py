import json

import pytest
import redis
from rescored_audits import rescorer
from starlette.testclient import TestClient
from stored_audits import complete_waiting, submit_batch

from api.app import create_app
from halldetect.settings import load_settings

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks. A dragon lives in it."
LENIENT = {
    "name": "lenient",
    "rules": {
        "claim_value": "entailment",
        "aggregation": "mean",
        "response_threshold": 1.0,
    },
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def batch(client, sessions, auditor):
    """Three completed audits, one that waits, and a policy to score them with."""
    batch_id = submit_batch(sessions, FALSE, TRUE, "Thanks!")
    complete_waiting(sessions, auditor)
    submit_batch(sessions, TRUE)
    client.post("/v1/policies", json=LENIENT)
    return str(batch_id)


@pytest.fixture
def post(client):
    def send(selection=None, policy="lenient", **headers):
        body = {"policy": policy, "selection": {} if selection is None else selection}
        return client.post("/v1/scorings", json=body, headers=headers)

    return send


@pytest.fixture
def work(engine):
    """Do what the maintenance worker would do with an answer's rescoring."""
    return lambda answer: rescorer(engine).run(int(answer.json()["id"]))


def test_a_rescoring_is_accepted_then_followed_then_compared(client, batch, post, work):
    answer = post()
    assert answer.status_code == 202
    accepted = answer.json()
    assert (accepted["status"], accepted["total"], accepted["scored"]) == ("waiting", 3, 0)
    assert accepted["policy"]["name"] == "lenient"
    assert answer.headers["Location"] == f"/v1/scorings/{accepted['id']}"
    assert client.get(answer.headers["Location"]).json() == accepted
    work(answer)
    done = client.get(answer.headers["Location"]).json()
    assert (done["status"], done["scored"], done["present"], done["skipped"]) == (
        "completed",
        3,
        0,
        0,
    )
    assert done["finished_at"] is not None
    report = client.get(answer.headers["Location"] + "/comparison").json()
    assert (report["selected"], report["compared"], report["no_checkable_claims"]) == (3, 2, 1)
    assert report["labels"]["to_faithful"] == len(report["to_faithful"]) == 1
    assert report["to_faithful"][0]["custom_id"] == "r1"
    assert report["against"] is None


def test_a_worker_is_told(batch, post, redis_url):
    scoring_id = post().json()["id"]
    with redis.Redis.from_url(redis_url) as broker:
        [message] = broker.lrange("maintenance", 0, -1)
    assert json.loads(message)["headers"]["task"] == "halldetect.rescore"
    assert f"'rescoring_id': {scoring_id}" in json.loads(message)["headers"]["kwargsrepr"]


def test_selections_come_back_as_they_were_sent(client, batch, post):
    selection = {
        "ids": ["1", "2"],
        "batch_id": batch,
        "label": None,
        "outcome": "scored",
        "policy": "embedded",
        "custom_id": "r2",
        "submitted_from": "2026-01-01T00:00:00Z",
        "submitted_before": "2999-01-01T00:00:00Z",
    }
    answer = post({name: value for name, value in selection.items() if value is not None})
    assert answer.json()["selection"] == selection
    assert answer.json()["total"] == 1


def test_skips_say_why_and_name_an_example(client, batch, post, work):
    rules = {**LENIENT["rules"], "granularities": [1024]}
    client.post("/v1/policies", json={"name": "fine", "rules": rules})
    answer = post(policy="fine")
    work(answer)
    done = client.get(answer.headers["Location"]).json()
    assert (done["scored"], done["skipped"]) == (1, 2)
    assert done["skips"] == [{"reason": "granularities_missing", "audits": 2, "example": "1"}]


def test_a_comparison_with_another_policy(client, batch, post, work):
    first = post()
    work(first)
    other = post(policy="paper")
    work(other)
    path = f"/v1/scorings/{other.json()['id']}/comparison"
    report = client.get(path, params={"against": "lenient", "examples": 1}).json()
    assert report["against"]["name"] == "lenient"
    assert report["labels"]["to_hallucinated"] >= 1
    assert len(report["to_hallucinated"]) == 1
    assert client.get(path, params={"against": "nobody"}).status_code == 422
    assert client.get(path, params={"examples": 101}).status_code == 422
    assert client.get(path, params={"vs": "paper"}).status_code == 422


def test_a_repeated_request_is_answered_as_the_first(batch, post, stored):
    first = post(**{"Idempotency-Key": "monday"})
    again = post(**{"Idempotency-Key": "monday"})
    assert again.status_code == 202
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == first.content
    assert stored("rescorings") == 1
    assert post({"batch_id": batch}, **{"Idempotency-Key": "monday"}).status_code == 422


def test_without_a_broker_the_rescoring_is_stored_all_the_same(database, batch):
    settings = load_settings(database_url=database, redis_url="redis://127.0.0.1:1/0")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        answer = client.post("/v1/scorings", json={"policy": "lenient", "selection": {}})
        assert answer.status_code == 202
        assert client.get(answer.headers["Location"]).json()["status"] == "waiting"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"policy": "lenient"}, "body selection"),
        ({"selection": {}}, "body policy"),
        ({"policy": "nobody", "selection": {}}, "no policy is called 'nobody'"),
        ({"policy": "lenient\0", "selection": {}}, "body policy"),
        ({"policy": "lenient", "selection": {"ids": []}}, "body selection.ids"),
        ({"policy": "lenient", "selection": {"ids": [1]}}, "body selection.ids.0"),
        ({"policy": "lenient", "selection": {"ids": ["01"]}}, "body selection.ids.0"),
        ({"policy": "lenient", "selection": {"ids": ["9" * 19]}}, "ids are whole numbers"),
        ({"policy": "lenient", "selection": {"ids": ["0"]}}, "ids are whole numbers from 1 to"),
        ({"policy": "lenient", "selection": {"batch_id": "7" * 5000}}, "ids are whole numbers"),
        ({"policy": "lenient", "selection": {"ids": ["1", "4", "99"]}}, "the id 4, 99"),
        ({"policy": "lenient", "selection": {"ids": ["1"] * 10_001}}, "body selection.ids"),
        ({"policy": "lenient", "selection": {"batch_id": "99"}}, "no batch 99"),
        ({"policy": "lenient", "selection": {"status": "failed"}}, "body selection.status"),
        ({"policy": "lenient", "selection": {"label": "bad"}}, "body selection.label"),
        ({"policy": "lenient", "selection": {"policy": "nobody"}}, "no policy is called"),
        ({"policy": "lenient", "selection": {"custom_id": "\0"}}, "NUL"),
        (
            {"policy": "lenient", "selection": {"submitted_from": "2026-03-01T00:00:00"}},
            "body selection.submitted_from",
        ),
    ],
)
def test_requests_that_cannot_be_are_refused_by_their_field(client, batch, stored, body, fault):
    answer = client.post("/v1/scorings", json=body)
    assert answer.status_code == 422
    assert fault in answer.json()["detail"]
    assert stored("rescorings") == 0


@pytest.mark.parametrize("path", ["/v1/scorings/1", "/v1/scorings/1/comparison"])
def test_a_rescoring_that_is_not_there_is_not_found(client, path):
    assert client.get(path).status_code == 404
    assert client.get(path.replace("/1", "/x")).status_code == 404
