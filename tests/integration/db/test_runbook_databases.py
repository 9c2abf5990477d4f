"""The runbook's commands that change whole databases: what fails leaves them as they were."""

from __future__ import annotations

import psycopg
import pytest
import runbook

from cli.stack.postgres import PostgresServer

RESTORE = "Restore into an embedded stack"
AUDITS = "SELECT custom_id FROM halldetect.audits ORDER BY id"


@pytest.fixture
def operate(tmp_path):
    """Return a function that runs commands of the runbook on a database and returns their words."""

    def operate(database, *scripts):
        everything = "\n".join(["exec 2>&1", runbook.addresses(), *scripts])
        variables = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1/0"}
        return runbook.run(everything, folder=tmp_path, HALLDETECT_HOME=str(tmp_path), **variables)

    return operate


@pytest.fixture
def dumped(operate, database, service):
    """The address of a database with one audit, of which there is a dump."""
    service.submit("The mill opened in 1900.", batch=False)
    operate(database, "pg_dump --format=custom --file=halldetect.dump")
    return database


@pytest.fixture
def server(tmp_path):
    """A server of its own, whose passwords may change."""
    (tmp_path / "postgres").mkdir()
    server = PostgresServer(tmp_path / "postgres", durable=False)
    server.start()
    yield server
    server.stop()


def ask(database, statement):
    with psycopg.connect(database) as connection:
        return connection.execute(statement).fetchall()


def failed(operate, *arguments):
    """Run commands that must fail; return what they said."""
    with pytest.raises(AssertionError) as said:
        operate(*arguments)
    return str(said.value)


def test_a_new_stack_gets_the_dump_without_a_word(operate, dumped, server, tmp_path):
    operate(server.url, "python -m db.migrate upgrade")
    assert operate(server.url, runbook.commands(RESTORE)) == ""
    assert ask(server.url, AUDITS) == ask(dumped, AUDITS) == [("r1",)]
    assert not (tmp_path / "restore.sql").exists()


def test_a_dump_that_is_none_leaves_the_new_stack_as_it_was(operate, server):
    operate(server.url, "python -m db.migrate upgrade")
    # As a shell of an operator does, which goes on after a command that failed.
    said = failed(operate, server.url, "set +e", runbook.commands(RESTORE))
    assert "halldetect.dump" in said
    assert ask(server.url, AUDITS) == []


def test_a_database_with_audits_is_not_replaced(operate, dumped):
    said = failed(operate, dumped, "set +e", runbook.commands(RESTORE))
    assert "this database has audits" in said
    assert ask(dumped, AUDITS) == [("r1",)]


def test_without_its_dump_a_new_server_gets_no_tables(operate, server, tmp_path):
    (tmp_path / "roles.sql").write_text("SELECT 1;\n")
    restore = runbook.commands("Restore on a server of your own", containing="pg_restore")
    assert "halldetect.dump" in failed(operate, server.url, "set +e", restore)
    assert ask(server.url, "SELECT to_regclass('halldetect_version')") == [(None,)]


def test_a_password_is_written_down_once_postgres_has_it(operate, server, tmp_path):
    rotate = runbook.commands("Rotate passwords of the embedded stack", containing="ALTER ROLE")
    old = server.url
    assert operate(old, rotate) == ""
    assert server.url != old
    assert ask(server.url, "SELECT 1") == [(1,)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(old, "SELECT 1")
    new = server.url
    assert "password authentication failed" in failed(operate, old, "set +e", rotate)
    assert server.url == new
