"""The id of a request: in its answer, and in all that is logged because of it."""

import pytest
from starlette.testclient import TestClient
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from api.app import create_app

TEXTS = {"source": "The mill closed in 1998.", "response": "The mill closed."}


def test_every_request_has_an_id_of_its_own(client):
    ids = {client.get("/healthz").headers["X-Request-ID"] for _ in range(3)}
    ids.add(client.get("/v1/audits/1").headers["X-Request-ID"])
    ids.add(client.get("/nothing").headers["X-Request-ID"])
    assert len(ids) == 5
    assert all(len(one) == 32 for one in ids)


def test_a_clients_own_id_is_kept(client):
    answer = client.get("/healthz", headers={"X-Request-ID": "night-run_17.b"})
    assert answer.headers.get_list("X-Request-ID") == ["night-run_17.b"]


@pytest.mark.parametrize(
    "sent", ["", "a b", 'a"b', "x" * 129, "-rf", "a;b", "caf\u00e9".encode("latin-1"), "{}"]
)
def test_an_id_that_could_be_taken_for_something_else_is_replaced(client, sent):
    answer = client.get("/healthz", headers={"X-Request-ID": sent})
    assert len(answer.headers["X-Request-ID"]) == 32


def test_two_ids_are_none(client):
    answer = client.get("/healthz", headers=[("X-Request-ID", "a"), ("X-Request-ID", "b")])
    assert len(answer.headers["X-Request-ID"]) == 32


def test_an_unforeseen_error_names_its_request_too(settings, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("odd")

    monkeypatch.setattr("api.routes.audits.list_audits", fail)
    with TestClient(
        create_app(settings()), base_url="http://localhost", raise_server_exceptions=False
    ) as client:
        answer = client.get("/v1/audits", headers={"X-Request-ID": "mine"})
    assert answer.status_code == 500
    assert answer.headers["X-Request-ID"] == "mine"


def test_all_lines_of_a_submission_carry_the_requests_id(client, jsonl, record):
    upload = {"Content-Type": "application/jsonl", "X-Request-ID": "many"}
    with capture_logs(processors=[merge_contextvars]) as lines:
        client.post("/v1/audits", json=TEXTS, headers={"X-Request-ID": "one"})
        client.post("/v1/batches", content=jsonl(record("a"), record("b")), headers=upload)
    one, many = ([line for line in lines if line["request_id"] == name] for name in ("one", "many"))
    assert [line["event"] for line in one] == ["audit submitted", "sent a wake-up", "request"]
    assert [line.get("audit_id") for line in one] == [1, 1, None]
    assert [line["event"] for line in many] == ["batch submitted", "sent a wake-up", "request"]
    assert (many[0]["batch_id"], many[0]["audits"]) == (1, 2)
    assert one[1]["sent_task_id"] != many[1]["sent_task_id"]
    assert len(lines) == 6
