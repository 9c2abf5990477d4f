"""Pages of other sites are kept out where no key is asked for."""

from __future__ import annotations

import asyncio

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from halldetect.settings import load_settings


@pytest.fixture
def make_client():
    def make(address="http://localhost", **overrides):
        settings = load_settings(
            database_url="postgresql://nobody@127.0.0.1:1/none",
            redis_url="redis://127.0.0.1:1/0",
            **overrides,
        )
        return TestClient(create_app(settings), base_url=address)

    return make


@pytest.fixture
def client(make_client):
    return make_client()


HERE = [
    "localhost",
    "LOCALHOST:8000",
    "127.0.0.1",
    "127.0.0.1:8000",
    "127.3.2.1:80",
    "[::1]",
    "[::1]:8000",
]
ELSEWHERE = [
    "",
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example#localhost",
    "192.0.2.1",
    "0.0.0.0:8000",
    "[2001:db8::1]:8000",
    "[::1",
    "::1]",
    "testserver",
]
NOT_BY_SCHEMA = ["/", "/docs", "/docs-assets/swagger-ui.css", "/openapi.json", "/nowhere"]


@pytest.mark.parametrize("host", HERE)
def test_names_of_this_machine_are_answered(client, host):
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ELSEWHERE)
def test_other_names_are_refused(client, host):
    answer = client.get("/healthz", headers={"Host": host})
    assert answer.status_code == 421
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "urn:halldetect:problem:misdirected"
    assert "HALLDETECT_API_KEYS_REQUIRED=true" in problem["detail"]
    assert "evil" not in answer.text


def test_every_address_is_covered(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert len(paths) > 15
    for path in (*paths, *NOT_BY_SCHEMA):
        for method in ("GET", "POST"):
            answer = client.request(method, path, headers={"Host": "evil.example"})
            assert answer.status_code == 421, (method, path)


@pytest.mark.parametrize("hosts", [[], [b"localhost", b"localhost"]])
def test_there_must_be_one_host(client, hosts):
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "raw_path": b"/healthz",
        "query_string": b"",
        "headers": [(b"host", host) for host in hosts],
        "server": ("127.0.0.1", 8000),
    }
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(client.app(scope, None, send))
    assert sent[0]["status"] == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://localhost.evil.example",
        "http://localhost:3000",
        "null",
        "",
        "file://",
    ],
)
@pytest.mark.parametrize(
    "path", ["/v1/batches/1/cancel", "/v1/batches/1/retry", "/v1/audits/1/retry", "/v1/audits"]
)
def test_pages_of_other_sites_change_nothing(client, path, origin):
    answer = client.post(path, headers={"Origin": origin})
    assert answer.status_code == 403
    problem = answer.json()
    assert problem["type"] == "urn:halldetect:problem:cross-site"
    assert "HALLDETECT_API_KEYS_REQUIRED=true" in problem["detail"]


def test_every_route_that_changes_something_is_covered(client):
    paths = client.get("/openapi.json").json()["paths"]
    changing = [
        (method, path)
        for path, operations in paths.items()
        for method in operations
        if method not in ("get", "head", "options")
    ]
    assert len(changing) >= 8
    for method, path in changing:
        answer = client.request(method, path, headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403, (method, path)


def test_the_docs_page_may_send(client):
    """It is served by the same host."""
    headers = {"Host": "LocalHost:8000", "Origin": "http://localhost:8000"}
    answer = client.post("/v1/batches/1/cancel", headers=headers)
    assert answer.status_code == 503  # it was let in, and there is no database
    assert client.get("/healthz", headers={"Origin": "http://evil.example"}).status_code == 200


@pytest.mark.parametrize(
    ("address", "overrides"),
    [
        ("http://audits.example", {"api_keys_required": True}),
        ("http://audits.example", {"api_host": "0.0.0.0"}),
        ("http://192.0.2.7", {}),
    ],
)
def test_where_keys_are_asked_for_names_are_not(make_client, address, overrides):
    client = make_client(address, **overrides)
    headers = {"Origin": "http://evil.example"}
    assert client.get("/healthz").status_code == 200
    assert client.post("/v1/batches/1/cancel", headers=headers).status_code == 401
