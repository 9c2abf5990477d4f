"""Postgres that is full, read-only or out of connections: nobody is charged for it."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from celery_processes import wait_until
from sqlalchemy.engine import make_url
from starlette.testclient import TestClient

from api.app import create_app
from db.line import Stage
from halldetect.settings import load_settings
from worker.run import Ended

TABLES = {Stage.EXTRACTION: "claims", Stage.VERIFICATION: "probabilities"}
COUNTS = (
    "SELECT (SELECT count(DISTINCT audit_id) FROM halldetect.extractions),"
    " (SELECT count(DISTINCT audit_id) FROM halldetect.claims),"
    " (SELECT count(DISTINCT audit_id) FROM halldetect.verifications),"
    " (SELECT count(DISTINCT audit_id) FROM halldetect.probabilities)"
)


class FullDisk:
    """Refuses rows of one table as a full disk does."""

    def __init__(self, url):
        self._url = url
        self._tables = []

    def begin(self, table, condition="true"):
        self._tables.append(table)
        self._run(
            "CREATE OR REPLACE FUNCTION fill_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'could not extend file: No space left on device'"
            " USING ERRCODE = '53100'; END $$",
            f"CREATE TRIGGER full_disk BEFORE INSERT ON halldetect.{table} FOR EACH ROW"
            f" WHEN ({condition}) EXECUTE FUNCTION fill_disk()",
        )

    def end(self):
        self._run(*(f"DROP TRIGGER full_disk ON halldetect.{table}" for table in self._tables))
        self._tables.clear()

    def _run(self, *statements):
        with psycopg.connect(self._url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture
def full_disk(database):
    full_disk = FullDisk(database)
    yield full_disk
    full_disk.end()


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between runs, which are noted instead of waited for."""
    pauses = []
    monkeypatch.setattr(
        "worker.pauses.OutagePause.wait", lambda pause: pauses.append(pause._seconds)
    )
    return pauses


@pytest.fixture
def api(database, redis_url):
    app = create_app(load_settings(database_url=database, redis_url=redis_url))
    with TestClient(app, base_url="http://localhost") as api:
        yield api


@pytest.mark.parametrize("stage", list(Stage))
def test_a_full_disk_in_the_middle_of_a_load_leaves_nothing_half_written(
    start_worker, submit, states, rows, nothing_is_held, full_disk, pauses, stage
):
    submit(*[f"The mill opened in {1900 + n}. Nobody was hurt." for n in range(5)])
    process = start_worker("extraction", "nli")
    if stage is Stage.VERIFICATION:
        process.run(Stage.EXTRACTION)
    before = rows(COUNTS)[0]
    pauses.clear()
    # The first claim of the third audit can be written, and its second cannot.
    full_disk.begin(TABLES[stage], "NEW.audit_id > 2 AND NEW.position > 0")
    summaries = [process.run(stage) for _ in range(7)]
    assert {summary.ended for summary in summaries} == {Ended.NO_DATABASE}
    assert "No space left" in summaries[0].error
    # The model does not run on the same audits again and again without a pause.
    assert pauses == [0, 1, 2, 4, 8, 16, 30]
    waiting = [(stage.awaited_in.value, 0)] * 3
    assert [(status, faults) for status, _, faults in states()][2:] == waiting
    assert nothing_is_held()
    written = (2, 2, 0, 0) if stage is Stage.EXTRACTION else (5, 5, 2, 2)
    assert rows(COUNTS) == [written] != [before]
    full_disk.end()
    assert process.run(stage).audits == 3
    assert process.run(Stage.VERIFICATION).ended is Ended.NOTHING_LEFT
    assert [(status, faults) for status, _, faults in states()] == [("completed", 0)] * 5
    assert rows(COUNTS) == [(5, 5, 5, 5)]
    assert pauses[-1] == 0 or stage is Stage.VERIFICATION


def test_with_a_full_disk_the_api_takes_nothing_and_says_when_to_come_again(
    api, full_disk, rows, redis_url
):
    audit = {"source": "The mill opened in 1900.", "response": "It opened."}
    full_disk.begin("audits")
    line = b'{"custom_id": "a", "source": "The mill opened.", "response": "It opened."}\n'
    jsonl = {"content": line, "headers": {"Content-Type": "application/jsonl"}}
    for answer in (api.post("/v1/audits", json=audit), api.post("/v1/batches", **jsonl)):
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
    stored = "SELECT (SELECT count(*) FROM halldetect.audits), (SELECT count(*) FROM"
    assert rows(f"{stored} halldetect.batches)") == [(0, 0)]
    full_disk.end()
    assert api.post("/v1/audits", json=audit).status_code == 202


@pytest.fixture
def only_reading(database, postgres):
    """Let the database refuse all writes, or allow them again to new connections."""
    name = make_url(database).database

    def switch(is_on):
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(
                f'ALTER DATABASE "{name}" SET default_transaction_read_only = {is_on}'
            )
            if is_on:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    [name],
                )

    return switch


@pytest.mark.parametrize("stage", list(Stage))
def test_a_server_that_becomes_read_only_is_an_outage(
    start_worker, submit, states, encoder, extractor, only_reading, api, nothing_is_held, stage
):
    submit(*[f"The mill opened in {1900 + n}." for n in range(3)])
    process = start_worker("extraction", "nli")
    if stage is Stage.VERIFICATION:
        process.run(Stage.EXTRACTION)
    begins = iter([True])
    encoder.before = extractor.before = lambda _: [only_reading(one) for one in begins]
    assert process.run(stage).ended is Ended.NO_DATABASE
    summary = process.run(stage)
    assert (summary.audits, summary.ended) == (0, Ended.NO_DATABASE)
    assert "read-only transaction" in summary.error
    audit = {"source": "The mill opened in 1900.", "response": "It opened."}
    assert api.post("/v1/audits", json=audit).status_code == 503
    assert api.get("/v1/audits").status_code == 200
    # The connections that are there would go on refusing; they are given up.
    only_reading(False)
    wait_until(nothing_is_held)
    assert {(status, faults) for status, _, faults in states()} == {(stage.awaited_in.value, 0)}
    for left in list(Stage)[list(Stage).index(stage) :]:
        wait_until(lambda left=left: process.run(left).ended is Ended.NOTHING_LEFT)
    assert [(status, faults) for status, _, faults in states()] == [("completed", 0)] * 3
    wait_until(lambda: api.post("/v1/audits", json=audit).status_code == 202)


def test_without_a_free_connection_a_run_ends_and_a_later_one_does_the_work(
    start_worker, submit, states, database, outage_of_connections
):
    submit("The mill opened in 1900.")
    process = start_worker("extraction")
    with outage_of_connections():
        summary = process.run(Stage.EXTRACTION)
        assert summary.ended is Ended.NO_DATABASE
        assert "too many" in summary.error
    assert process.run(Stage.EXTRACTION).audits == 1
    assert states() == [("extracted", 1, 0)]


@pytest.fixture
def outage_of_connections(database, postgres):
    """Take all connections that the server has, those of the database's users included.

    The server has done with a connection a while after it was closed: none such is left that could
    make room in the middle of the outage, and after it there is room.
    """
    name = make_url(database).database

    def look(connection, taken=()):
        pids = [one.info.backend_pid for one in (connection, *taken)]
        return connection.execute(
            "SELECT count(*) = current_setting('max_connections')::int,"
            " count(*) FILTER (WHERE datname IS DISTINCT FROM %s AND NOT pid = ANY(%s))"
            " FROM pg_stat_activity WHERE backend_type = 'client backend'",
            [name, pids],
        ).fetchone()

    def take_all(stack, taken):
        while True:
            taken.append(stack.enter_context(psycopg.connect(postgres.url)))

    @contextmanager
    def outage():
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
            taken = []
            with ExitStack() as stack:
                while look(connection, taken) != (True, 0):
                    with pytest.raises(psycopg.OperationalError, match="too many"):
                        take_all(stack, taken)
                yield
            wait_until(lambda: look(connection) == (False, 0))

    return outage
