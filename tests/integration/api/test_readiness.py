"""`/readyz` on servers that are really stopped: it names what is missing, and what to do."""

from __future__ import annotations

import psycopg
import pytest
from starlette.testclient import TestClient

from api.app import create_app
from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from db.engine import make_engine, session_factory
from db.migrate import downgrade, head_revision, upgrade
from db.models import WorkerState
from db.workers import WorkerCounters, heartbeat, register
from halldetect.settings import load_settings

QUEUES = ("extraction", "nli", "maintenance")


@pytest.fixture
def servers(tmp_path_factory):
    """A Postgres and a Valkey that a test may stop and start."""
    postgres = PostgresServer(tmp_path_factory.mktemp("postgres"), durable=False)
    valkey = ValkeyServer(tmp_path_factory.mktemp("valkey"))
    for server in (postgres, valkey):
        server.start()
    upgrade(postgres.url)
    yield postgres, valkey
    for server in (postgres, valkey):
        server.stop()


@pytest.fixture
def ready():
    """Return a function: a client to what is missing, none when it is ready, and the document."""

    def ask(client):
        answer = client.get("/readyz")
        document = answer.json()
        if answer.status_code == 200:
            return [], document
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "127.0.0.1" not in answer.text  # what is inside is no stranger's business
        return document["missing"], document

    return ask


def test_it_names_the_server_that_is_stopped_and_recovers(servers, ready):
    postgres, valkey = servers
    app = create_app(load_settings(database_url=postgres.url, redis_url=valkey.url))
    with TestClient(app, base_url="http://localhost") as client:
        assert ready(client)[0] == []
        valkey.stop()
        missing, document = ready(client)
        assert missing == ["broker"]
        assert "REDIS_URL" in document["detail"]
        postgres.stop()
        assert ready(client)[0] == ["database", "broker"]
        valkey.start()
        missing, document = ready(client)
        assert missing == ["database"]
        assert "DATABASE_URL" in document["detail"]
        postgres.start()
        assert ready(client)[0] == []
        assert client.get("/healthz").status_code == 200


def test_it_tells_a_database_that_is_behind_from_one_that_is_ahead(make_client, database, ready):
    client = make_client()
    downgrade(database, "0005")
    missing, document = ready(client)
    assert missing == ["schema"]
    assert "at revision 0005" in document["detail"]
    assert "db.migrate upgrade" in document["detail"]
    upgrade(database)
    assert ready(client)[0] == []
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE halldetect_version SET version_num = '9999'")
    missing, document = ready(client)
    assert missing == ["schema"]
    assert (
        f"revision 9999 and this version knows none beyond {head_revision()}" in document["detail"]
    )
    assert "db.migrate upgrade" not in document["detail"]


def report(database, queue, state):
    engine = make_engine(database)
    with session_factory(engine).begin() as session:
        register(session, f"{queue}@box/1", queues=[queue], pid=1, host="box")
        heartbeat(
            session,
            f"{queue}@box/1",
            state=state,
            error=None,
            models=[],
            counters=WorkerCounters(),
        )
    engine.dispose()


def test_queues_that_no_worker_takes_are_warnings_since_work_is_accepted_all_the_same(
    make_client, database, ready
):
    client = make_client()
    missing, document = ready(client)
    assert missing == []
    assert [warning.partition(":")[0] for warning in document["warnings"]] == [
        f"queue {queue}" for queue in QUEUES
    ]
    report(database, "extraction", WorkerState.READY)
    report(database, "nli", WorkerState.FAILED)
    report(database, "maintenance", WorkerState.LOADING)
    (warning,) = ready(client)[1]["warnings"]
    assert warning.startswith("queue nli: its workers cannot load their models")
