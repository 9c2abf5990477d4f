import pytest

from cli.client import patience
from cli.client.errors import BatchRefused, LineFault, ServiceError, ServiceUnavailable
from cli.client.service import Service
from halldetect.errors import InputError


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch):
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)


def test_a_refusal_is_the_users_fault_in_the_services_words(service, steps):
    with (
        service(steps["problem"](404, "there is no batch 12")) as (client, _),
        pytest.raises(InputError, match="there is no batch 12"),
    ):
        client.batch(12)


def test_faults_of_lines_are_kept_apart(service, steps):
    faults = [{"line": 3, "column": 2, "message": "not JSON"}, {"line": 9, "message": "twice"}]
    refusal = steps["problem"](422, "7 errors", errors=faults, total_errors=7)
    with service(refusal) as (client, _), pytest.raises(BatchRefused, match="7 errors") as raised:
        client.upload_batch([b"x"], size=1, idempotency_key="k", policy=None, priority=None)
    assert raised.value.faults == (LineFault(3, "not JSON"), LineFault(9, "twice"))
    assert raised.value.total_faults == 7


def test_faults_of_fields_are_no_faults_of_lines(service, steps):
    faults = [{"place": "query", "field": "policy", "message": "odd"}]
    with (
        service(steps["problem"](422, "query policy: odd", errors=faults)) as (client, _),
        pytest.raises(InputError, match="query policy: odd") as raised,
    ):
        client.batch(12)
    assert not isinstance(raised.value, BatchRefused)


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_what_may_pass_is_worth_another_try(service, steps, status):
    with (
        service(steps["problem"](status, "not now")) as (client, _),
        pytest.raises(ServiceUnavailable, match="not now"),
    ):
        client.batch(12)


@pytest.mark.parametrize("status", [500, 507])
def test_a_fault_of_the_service_is_not(service, steps, status):
    with (
        service(steps["problem"](status, "the log says why")) as (client, _),
        pytest.raises(ServiceError, match="the log says why") as raised,
    ):
        client.batch(12)
    assert not isinstance(raised.value, ServiceUnavailable)


@pytest.mark.parametrize(
    ("status", "content", "media_type"),
    [
        (404, b"<html>", "text/html"),
        (200, b"<html>", "text/html"),
        (200, b"[]", "application/json"),
        (302, b"", "text/html"),
        (404, b"{", "application/problem+json"),
        (404, b"[]", "application/problem+json"),
    ],
)
def test_another_server_at_the_address_is_told(service, steps, status, content, media_type):
    with (
        service(steps["answer"](status, content, media_type)) as (client, _),
        pytest.raises(ServiceError, match="HallDetect service"),
    ):
        client.batch(12)


def test_where_nobody_listens_the_address_is_named(closed_port):
    with Service(closed_port) as client, pytest.raises(ServiceUnavailable, match=closed_port):
        client.batch(12)


def test_a_broken_connection_is_worth_another_try(service, steps):
    with (
        service(steps["cut"]()) as (client, _),
        pytest.raises(ServiceUnavailable, match="the connection was lost"),
    ):
        client.batch(12)


def test_no_proxy_stands_between_this_machine_and_itself(service, steps, batch, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with service(steps["answer"](200, batch())) as (client, _):
        assert client.batch(12)["id"] == "12"


def test_pages_are_followed_to_the_last(service, steps):
    pages = [
        {"items": [{"id": "3"}, {"id": "2"}], "next_cursor": "abc"},
        {"items": [{"id": "1"}], "next_cursor": None},
    ]
    with service(*(steps["answer"](200, page) for page in pages)) as (client, script):
        audits = list(client.audits(batch_id="12", label="hallucinated"))
    assert [audit["id"] for audit in audits] == ["3", "2", "1"]
    paths = [path for _, path, _, _ in script.requests]
    assert paths == [
        "/v1/audits?batch_id=12&label=hallucinated&limit=1000",
        "/v1/audits?batch_id=12&label=hallucinated&limit=1000&cursor=abc",
    ]
