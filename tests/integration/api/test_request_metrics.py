"""What a process counts of its requests, under labels that nobody can add to."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from api.app import create_app

TEXTS = {"source": "The mill closed in 1998.", "response": "The mill closed."}


def samples_of(client, family):
    answer = client.get("/metrics")
    return {
        tuple(sample.labels[name] for name in sorted(sample.labels)): sample.value
        for found in text_string_to_metric_families(answer.text)
        if found.name == family
        for sample in found.samples
        if sample.name == f"{family}_total" or sample.name.endswith("_count")
    }


def test_requests_count_under_the_template_of_their_route(client):
    for number in range(3):
        client.get(f"/v1/audits/{number + 1}")
        client.post(f"/v1/batches/{number + 1}/retry")
    client.post("/v1/audits", json=TEXTS)
    client.get("/healthz")
    client.get("/docs")
    assert samples_of(client, "halldetect_http_requests") == {
        ("GET", "/v1/audits/{audit_id}", "404"): 3,
        ("POST", "/v1/batches/{batch_id}/retry", "404"): 3,
        ("POST", "/v1/audits", "202"): 1,
        ("GET", "/healthz", "200"): 1,
        ("GET", "/docs", "200"): 1,
    }
    times = samples_of(client, "halldetect_http_request_seconds")
    assert times["GET", "/v1/audits/{audit_id}"] == 3
    assert times["GET", "/metrics"] == 1


def test_no_client_makes_new_labels(client):
    for path in ("/nothing", "/v1/nothing/here", "/v1/audits/1/2/3", "/metrics/x", "/%7Bx%7D"):
        client.get(path)
    client.request("BREW", "/v1/audits")
    client.request("x" * 100, "/v1/audits")
    client.delete("/v1/audits/7")
    assert samples_of(client, "halldetect_http_requests") == {
        ("GET", "none", "404"): 5,
        ("other", "/v1/audits", "405"): 2,
        ("DELETE", "/v1/audits/{audit_id}", "405"): 1,
    }


def test_every_documented_route_has_a_label_of_its_own(client):
    templates = client.get("/openapi.json").json()["paths"]
    metrics = client.app.state.service.metrics
    for template in templates:
        assert metrics._template(template.replace("{", "x").replace("}", "")) == template


def test_problems_count_by_kind(make_client):
    client = make_client(max_waiting_audits=1)
    client.get("/v1/audits/1")
    client.post("/v1/audits", json=TEXTS)
    assert client.post("/v1/audits", json=TEXTS).status_code == 429
    client.post("/v1/audits", content="no JSON", headers={"Content-Type": "application/json"})
    found = samples_of(client, "halldetect_http_problems")
    assert {kind: count for kind, count in found.items() if count} == {
        ("not-found",): 1,
        ("too-much-waiting",): 1,
        ("invalid-request",): 1,
    }
    assert found["internal-error",] == 0  # there before it happens, so that its first one is seen


def test_an_unforeseen_error_is_counted_too(settings, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("odd")

    monkeypatch.setattr("api.routes.audits.list_audits", fail)
    with TestClient(
        create_app(settings()), base_url="http://localhost", raise_server_exceptions=False
    ) as client:
        client.get("/v1/audits")
        assert samples_of(client, "halldetect_http_problems")["internal-error",] == 1
        assert samples_of(client, "halldetect_http_requests")["GET", "/v1/audits", "500"] == 1


def test_wake_ups_that_were_sent_are_counted(client):
    client.post("/v1/audits", json=TEXTS)
    assert samples_of(client, "halldetect_wake_ups_sent")["halldetect.extract",] == 1
    assert samples_of(client, "halldetect_wake_up_failures")["halldetect.extract",] == 0


@pytest.mark.parametrize(
    "key", ["halldetect_http_requests_total", "halldetect_wake_ups_sent_total"]
)
def test_two_applications_in_one_process_count_apart(make_client, key):
    first, second = make_client(), make_client()
    first.post("/v1/audits", json=TEXTS)
    assert f"{key}{{" in first.get("/metrics").text
    assert 'route="/v1/audits"' not in second.get("/metrics").text
