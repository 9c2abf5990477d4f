"""Servers that are away: what the API says meanwhile, and that it recovers by itself."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy.engine import make_url
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from api.app import create_app
from db.migrate import head_revision
from halldetect.settings import load_settings

TEXTS = {"source": "The mill closed in 1998.", "response": "The mill closed."}
NO_BROKER = "redis://127.0.0.1:1/0"
MILLISECONDS_AT_MOST = 60_000  # until a connection is really gone
NO_DATABASE = "postgresql://nobody:secret@127.0.0.1:1/none"


@pytest.fixture
def close_database(database, postgres):
    """Refuse new connections and end all there are, or allow them again."""
    name = make_url(database).database

    def switch(allowed):
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allowed}')
            connection.execute(
                "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE datname = %s",
                [MILLISECONDS_AT_MOST, name],
            )

    yield switch
    switch("true")


def test_without_a_database_it_says_503_and_recovers(client, close_database, record, jsonl, stored):
    assert client.post("/v1/audits", json=TEXTS).status_code == 202
    upload = {"content": jsonl(record("a")), "headers": {"Content-Type": "application/jsonl"}}
    requests = [
        ("GET", "/v1/audits", {}),
        ("GET", "/v1/audits/1", {}),
        ("POST", "/v1/audits", {"json": TEXTS}),
        ("POST", "/v1/batches", upload),
        ("GET", "/v1/batches/1", {}),
        ("GET", "/v1/batches/1/results", {}),
        ("POST", "/v1/batches/1/cancel", {}),
        ("GET", "/v1/policies", {}),
    ]
    close_database("false")
    for method, path, options in requests:
        answer = client.request(method, path, **options)
        assert answer.status_code == 503, (method, path)
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert int(answer.headers["Retry-After"]) > 0
    assert client.get("/healthz").status_code == 200
    # An outage is when one wants to see what the process itself knows.
    metrics = client.get("/metrics")
    assert metrics.status_code == 200
    assert "\nhalldetect_database_up 0.0\n" in metrics.text
    assert 'halldetect_http_problems_total{kind="unavailable"} 8.0\n' in metrics.text
    assert "halldetect_waiting_audits" not in metrics.text
    close_database("true")
    assert client.post("/v1/batches", **upload).status_code == 202
    for method, path, options in requests:
        assert client.request(method, path, **options).status_code in (200, 202), (method, path)
    assert stored("audits") == 4


LOST_AT_COMMIT = """
    CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {what}; RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON halldetect.{table}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose_connection();
"""
LOSS = "PERFORM pg_terminate_backend(pg_backend_pid())"
FULL_DISK = "RAISE 'no space' USING ERRCODE = 'disk_full'"


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        (LOSS, "outcome-unknown", "may be stored or not"),
        (FULL_DISK, "unavailable", "nothing was stored"),
    ],
)
def test_only_a_loss_during_the_commit_leaves_open_what_was_stored(
    client, execute, record, jsonl, what, kind, words
):
    upload = {"content": jsonl(record("a")), "headers": {"Content-Type": "application/jsonl"}}
    execute(LOST_AT_COMMIT.format(what=what, table="audits"))
    for path, options in (("/v1/audits", {"json": TEXTS}), ("/v1/batches", upload)):
        answer = client.post(path, **options)
        assert answer.status_code == 503, answer.text
        assert answer.json()["type"] == f"urn:halldetect:problem:{kind}"
        assert words in answer.json()["detail"]
        assert int(answer.headers["Retry-After"]) > 0


def test_without_a_broker_work_is_stored_all_the_same(database, stored, record, jsonl):
    app = create_app(load_settings(database_url=database, redis_url=NO_BROKER))
    with TestClient(app, base_url="http://localhost") as client, capture_logs() as logs:
        assert client.post("/v1/audits", json=TEXTS).status_code == 202
        answer = client.post(
            "/v1/batches",
            content=jsonl(record("a")),
            headers={"Content-Type": "application/jsonl"},
        )
        metrics = client.get("/metrics").text
    assert answer.status_code == 202
    assert (stored("audits"), stored("batches")) == (2, 1)
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert 'halldetect_wake_up_failures_total{task="halldetect.extract"} 2.0\n' in metrics
    assert 'halldetect_wake_ups_sent_total{task="halldetect.extract"} 0.0\n' in metrics
    assert [(entry["audit_id"], entry["batch_id"]) for entry in warnings] == [(1, None), (None, 1)]


def test_it_is_ready_when_all_is_there(client):
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ready"
    assert client.get("/healthz").json() == {"status": "ok"}


def test_it_says_what_is_missing(database, empty_database, redis_url):
    for database_url, broker_url, missing in (
        (NO_DATABASE, redis_url, ["database"]),
        (database, NO_BROKER, ["broker"]),
        (empty_database, redis_url, ["schema"]),
        (NO_DATABASE, NO_BROKER, ["database", "broker"]),
    ):
        app = create_app(load_settings(database_url=database_url, redis_url=broker_url))
        with TestClient(app, base_url="http://localhost") as client:
            answer = client.get("/readyz")
        assert answer.status_code == 503
        document = answer.json()
        assert document["missing"] == missing
        assert int(answer.headers["Retry-After"]) > 0
        assert "secret" not in answer.text
        assert "127.0.0.1" not in answer.text
        if missing == ["schema"]:
            assert head_revision() in document["detail"]
            assert "db.migrate upgrade" in document["detail"]


def test_tables_of_another_version_are_an_outage_and_no_fault_of_the_program(client, execute):
    execute("ALTER TABLE halldetect.batches RENAME COLUMN cancelled_at TO ended_at")
    with capture_logs() as logs:
        answer = client.get("/v1/batches")
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "of another version than this API" in answer.json()["detail"]
    assert "cancelled_at" not in answer.text
    assert any("cancelled_at" in entry.get("error", "") for entry in logs)
    execute("UPDATE halldetect_version SET version_num = '9999'")
    not_ready = client.get("/readyz").json()
    assert not_ready["missing"] == ["schema"]
    assert "start the version that migrated it" in not_ready["detail"]


def test_an_unforeseen_error_is_told_without_its_trace(settings, monkeypatch):
    app = create_app(settings())

    def fail(*_, **__):
        raise RuntimeError("a secret of the house")

    monkeypatch.setattr("api.routes.audits.list_audits", fail)
    with (
        TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client,
        capture_logs() as logs,
    ):
        answer = client.get("/v1/audits")
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Connection"] == "close"
    assert "secret" not in answer.text
    assert [entry["status"] for entry in logs] == [500]
