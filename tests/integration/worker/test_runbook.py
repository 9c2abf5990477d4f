"""What the runbook says, done to real workers in the middle of a batch, with its own commands."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
import runbook
from celery_processes import ROOT, wait_until, worker_environment
from sqlalchemy.engine import make_url

from cli.stack.postgres import PostgresServer
from db.line import Stage
from db.migrate import downgrade
from db.models import WorkerState

SOURCE = " ".join(f"The mill made {n} sacks of flour in week {n}." for n in range(3))
RESPONSE = " ".join(f"The mill made {n} sacks of flour in week {n}." for n in range(2))
AUDITS = 20
QUICK = {"sweep_seconds": 1}
COMPLETED = "SELECT count(*) FROM halldetect.audits WHERE status = 'completed'"
BEGUN = "SELECT count(*) FROM halldetect.audits WHERE lease_begun"
SCORES = "SELECT id, fedscore FROM halldetect.audits WHERE status = 'completed' ORDER BY id"


@pytest.fixture
def batch(submit, wake_ups):
    """Store a batch half-way through which a faulty worker waits, and tell the workers."""
    responses = [f"{RESPONSE} It closed in {1900 + n}." for n in range(AUDITS)]
    responses[AUDITS // 2] = "The ferry sails at noon."
    wake_ups.send(Stage.EXTRACTION, batch_id=submit(*responses, source=SOURCE), reason="submitted")


@pytest.fixture
def operate(database, redis_url, tmp_path):
    """Return a function that runs commands of the runbook against the service under test."""

    def operate(*scripts, database=database):
        everything = "\n".join([runbook.addresses(), *scripts])
        return runbook.run(everything, folder=tmp_path, DATABASE_URL=database, REDIS_URL=redis_url)

    return operate


@pytest.fixture
def new_server(tmp_path):
    """The address of a database without tables, on a server that nobody has used."""
    server = PostgresServer(tmp_path / "new", durable=False)
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def analyst(postgres):
    """The name of a login of the server that may read the views."""
    name = f"ann_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(
            f"CREATE ROLE {name} LOGIN PASSWORD 'a-long-one' IN ROLE halldetect_reader"
        )
    yield name
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE {name}")


@contextmanager
def plain_worker(command, environment, folder):
    """Run the command of a worker, and end it if it has not ended."""
    path = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    with (folder / "added.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.strip()}"],
            cwd=folder,
            env={**environment, "PATH": path, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_worker_is_added_and_drained_in_the_middle_of_a_batch(
    start_faulty, batch, database, redis_url, operate, rows, states, faults, is_waiting, tmp_path
):
    _, busy = start_faulty("extraction", "nli", load_audits=2)
    wait_until(lambda: is_waiting(busy))
    here = socket.gethostname()
    held = (
        "SELECT count(*) FILTER (WHERE lease_begun), count(*) FROM halldetect.audits"
        f" WHERE lease_owner LIKE 'nli-2@{here}/%'"
    )
    reports = f"SELECT FROM halldetect.workers WHERE name LIKE 'nli-2@{here}/%'"
    environment = worker_environment(database, redis_url, load_audits=2)
    with (
        psycopg.connect(database) as writing,
        plain_worker(runbook.commands("Add a worker"), environment, tmp_path) as added,
    ):
        # It cannot write what it has begun before it is drained, however quick it is.
        writing.execute("LOCK TABLE halldetect.verifications IN SHARE MODE")
        wait_until(lambda: rows(held)[0][0] > 0 and rows(reports))
        assert f"nli-2@{here} " in operate("halldetect status")
        # It says that nobody answered: a worker that ends does not.
        operate(runbook.commands("Drain a worker", containing="celery").rstrip() + " || true")
        writing.commit()
        assert added.wait() == 0
    assert rows(held) == [(0, 0)]
    shown = json.loads(operate("halldetect status --json"))
    left = [worker["name"].partition("/")[0] for worker in shown["workers"]]
    assert left == [f"extraction@{here}", f"nli@{here}"]
    (faults / "go").touch()
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    assert {faults for _, _, faults in states()} == {0}


def test_a_dump_of_a_working_service_is_restored_and_worked_on(
    start_faulty, start_celery, batch, operate, rows, new_server, analyst, redis_url, faults
):
    everyone = ("extraction", "nli", "maintenance", "beat")
    before = start_faulty(*everyone, load_audits=2, **QUICK)
    wait_until(lambda: rows(COMPLETED) > [(0,)] and rows(BEGUN) > [(0,)])
    operate(runbook.commands("Back up"))
    (faults / "go").touch()
    for worker in before:
        worker.end()
    restore = "Restore on a server of your own"
    operate(runbook.commands(restore, containing="pg_restore"), database=new_server)

    def restored(statement):
        with psycopg.connect(new_server) as connection:
            return connection.execute(statement).fetchall()

    scored, begun = restored(SCORES), restored(BEGUN)
    assert 0 < len(scored) < AUDITS
    assert begun > [(0,)]
    with redis.Redis.from_url(redis_url) as broker:
        broker.flushall()
    start_celery(*everyone, database=new_server, load_audits=2, **QUICK)
    wait_until(lambda: restored(COMPLETED) == [(AUDITS,)])
    assert set(scored) <= set(restored(SCORES))
    # What was at work in the dump lost its worker, and is charged with no more than that.
    assert restored("SELECT sum(faults) FROM halldetect.audits") == begun
    check = runbook.commands(restore, containing="doctor")
    assert "all is well" in operate(check, database=new_server)
    address = make_url(new_server).set(username=analyst, password="a-long-one")
    with psycopg.connect(address.render_as_string(hide_password=False)) as connection:
        assert connection.execute("SELECT count(*) FROM trail.audits").fetchone() == (AUDITS,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT FROM halldetect.audits")


def test_an_upgrade_in_the_middle_of_a_batch_loses_and_charges_nothing(
    start_faulty,
    start_celery,
    batch,
    operate,
    rows,
    states,
    worker_rows,
    database,
    nothing_is_held,
    faults,
    is_waiting,
):
    before = start_faulty(
        "extraction", "nli", "maintenance", load_audits=2, extraction_load_audits=2
    )
    wait_until(lambda: rows(COMPLETED) > [(0,)] and is_waiting(before[1]))
    operate(runbook.commands("Upgrade", containing="pg_dump"))
    for worker in before:
        worker.process.send_signal(signal.SIGTERM)
    state = "SELECT state FROM halldetect.workers WHERE name LIKE 'nli@%'"
    wait_until(lambda: rows(state) == [(WorkerState.STOPPING,)])
    (faults / "go").touch()
    assert [worker.process.wait() for worker in before] == [0, 0, 0]
    assert nothing_is_held()
    assert worker_rows() == []
    # As an older version left it: nothing of the newer one's tables is there.
    downgrade(database, "-1")
    left = states()
    assert {status for status, _, _ in left} > {"completed"}
    (early,) = start_celery("nli")
    wait_until(lambda: worker_rows() and worker_rows()[0][0] is WorkerState.FAILED)
    assert "run `python -m db.migrate upgrade`" in worker_rows()[0][1]
    assert states() == left
    operate(runbook.commands("Upgrade", containing="db.migrate"))
    start_celery("extraction", "nli-2", "maintenance", "beat", **QUICK)
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    assert {faults for _, _, faults in states()} == {0}
    assert early.process.poll() is None
