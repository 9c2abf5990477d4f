import json

import pytest

RULES = {"claim_value": "entailment", "aggregation": "min", "response_threshold": 0.1}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def post(client):
    def send(name="strict", rules=RULES):
        return client.post("/v1/policies", json={"name": name, "rules": rules})

    return send


@pytest.fixture
def refusal(client):
    """Return the detail of the refusal of a body."""

    def read(body):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = client.post("/v1/policies", content=content, headers=JSON)
        assert answer.status_code == 422, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"
        return answer.json()["detail"]

    return read


def test_a_policy_is_stored_and_found_by_its_name(client, post):
    answer = post()
    assert answer.status_code == 201
    stored = answer.json()
    assert stored["name"] == "strict"
    assert stored["rules"] == {
        **RULES,
        "granularities": None,
        "margin": 0.0,
        "entailment_threshold": 0.5,
        "contradiction_threshold": 0.5,
    }
    assert answer.headers["Location"] == "/v1/policies/strict"
    assert client.get(answer.headers["Location"]).json() == stored
    assert stored in client.get("/v1/policies").json()["items"]


def test_what_is_read_can_be_posted_again(client, post):
    stored = post().json()
    again = post(stored["name"], stored["rules"])
    assert again.status_code == 200
    assert again.json() == stored


def test_other_rules_are_a_new_version(client, post):
    first = post().json()
    second = post(rules={**RULES, "margin": 0.5})
    assert second.status_code == 201
    assert second.json()["version"] != first["version"]
    assert client.get("/v1/policies/strict").json() == second.json()


def test_a_new_policy_can_be_used_at_once(client, post, record):
    post()
    answer = client.post("/v1/audits", json=record("a", policy="strict"))
    assert answer.status_code == 202
    trail = client.get(answer.headers["Location"]).json()
    assert trail["policy"]["name"] == "strict"


def test_every_fault_of_a_policy_is_listed(refusal):
    detail = refusal(
        {
            "name": "not a name",
            "rules": {
                "claim_value": "vibes",
                "aggregation": "median",
                "granularities": [],
                "margin": -0.5,
                "entailment_threshold": "0.5",
                "contradiction_threshold": True,
                "response_threshold": 1.5,
                "threshold": 0.5,
            },
        }
    )
    for field in (
        *("name", "claim_value", "aggregation", "granularities", "margin", "threshold"),
        *("entailment_threshold", "contradiction_threshold", "response_threshold"),
    ):
        assert f"{field}:" in detail


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"granularities": [3]}, "granularities: Value error, must be positive powers of two"),
        ({"granularities": [2**40]}, "granularities.0:"),
        ({"granularities": [1] * 65}, "granularities:"),
        ({"granularities": "all"}, "granularities:"),
        ({"margin": 1}, "margin:"),
        ({"aggregation": "row-max", "claim_value": "contrastive"}, "claim_value: row-max"),
        ({"aggregation": "row-max", "granularities": [4]}, "granularities: row-max"),
        ({"response_threshold": None}, "response_threshold:"),
        ({"name": "other"}, "rules.name:"),
    ],
)
def test_rules_that_cannot_be_are_refused_by_their_name(refusal, change, fault):
    assert fault in refusal({"name": "strict", "rules": {**RULES, **change}})


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", '"0.5"', "true"])
def test_what_is_no_json_number_is_refused(refusal, number):
    body = json.dumps({"name": "strict", "rules": {**RULES, "margin": 0.25}})
    assert refusal(body.replace("0.25", number).encode())


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"[]", "the body is a JSON object"),
        (b'{"name": "a", "name": "b", "rules": {}}', "'name' is given twice"),
        ({"name": "strict"}, "body rules"),
        ({"rules": RULES}, "body name"),
        ({"name": 7, "rules": RULES}, "body name"),
        ({"name": "strict", "rules": []}, "body rules"),
        ({"name": "strict", "rules": RULES, "version": "0123456789abcdef"}, "body version"),
        ({"name": "strict\0", "rules": RULES}, "name:"),
        ({"name": "x" * 65, "rules": RULES}, "name:"),
        ({"name": "paper", "rules": RULES}, "'paper' comes with the program"),
    ],
)
def test_bodies_that_are_no_policy_are_refused(refusal, stored, body, fault):
    before = stored("policies")
    assert fault in refusal(body)
    assert stored("policies") == before


def test_a_policy_is_sent_as_json(client):
    answer = client.post("/v1/policies", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415


def test_the_service_is_not_ready_before_its_default_policy_is_there(make_client):
    client = make_client(policy="strict")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["missing"] == ["policy"]
    assert "no policy is called 'strict'" in answer.json()["detail"]
    assert "HALLDETECT_POLICY" in answer.json()["detail"]
    client.post("/v1/policies", json={"name": "strict", "rules": RULES})
    assert client.get("/readyz").status_code == 200


def test_records_that_name_no_policy_take_the_default(make_client, record):
    client = make_client(policy="strict")
    assert client.post("/v1/audits", json=record("a")).status_code == 422
    client.post("/v1/policies", json={"name": "strict", "rules": RULES})
    submitted = client.post("/v1/audits", json=record("a"))
    trail = client.get(submitted.headers["Location"]).json()
    assert trail["policy"]["name"] == "strict"
