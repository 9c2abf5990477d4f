"""Workers and tables of different versions: they say so, take nothing, and charge nobody."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from db.line import Stage
from db.migrate import downgrade, head_revision, upgrade
from db.models import WorkerState
from worker import process as process_module
from worker.run import Ended

NEWER = "9999"


@pytest.fixture
def migrate_to(sessions):
    """Return a function that lets the tables be of another revision, by their own word."""

    def migrate_to(revision):
        with sessions.begin() as session:
            session.execute(text(f"UPDATE halldetect_version SET version_num = '{revision}'"))

    return migrate_to


def wait_for_report(worker_rows, state, part):
    while not any(row[0] is state and part in (row[1] or "") for row in worker_rows()):
        threading.Event().wait(0.05)


def test_a_worker_takes_nothing_from_newer_tables_and_says_so(
    start_worker, submit, states, migrate_to, worker_rows, nothing_is_held
):
    submit("The mill opened in 1900.", "Nobody was hurt.")
    worker = start_worker("extraction")
    wait_for_report(worker_rows, WorkerState.READY, "")
    migrate_to(NEWER)
    summary = worker.run(Stage.EXTRACTION)
    assert summary.ended is Ended.OTHER_VERSION
    assert f"revision {NEWER}" in summary.error
    assert f"none beyond {head_revision()}" in summary.error
    wait_for_report(worker_rows, WorkerState.FAILED, NEWER)
    assert states() == [("queued", 0, 0)] * 2
    assert nothing_is_held()


def test_what_a_worker_holds_when_the_tables_change_is_handed_back_and_charged_to_nobody(
    start_worker, submit, states, rows, migrate_to, nothing_is_held, encoder, sessions
):
    submit("The mill opened in 1900.", "Nobody was hurt.")
    start_worker("extraction").run(Stage.EXTRACTION)
    worker = start_worker("nli")

    def change_tables(batch):
        # What a newer version may want: something that this one does not write.
        with sessions.begin() as session:
            session.execute(text("ALTER TABLE halldetect.verifications ADD digest TEXT"))
            session.execute(
                text(
                    "ALTER TABLE halldetect.verifications ADD CHECK (digest IS NOT NULL) NOT VALID"
                )
            )
        migrate_to(NEWER)
        encoder.before = lambda batch: None

    encoder.before = change_tables
    assert worker.run(Stage.VERIFICATION).ended is Ended.OTHER_VERSION
    assert nothing_is_held()
    assert [(status, faults) for status, _, faults in states()] == [("extracted", 0)] * 2
    assert rows("SELECT count(*) FROM halldetect.verifications") == [(0,)]


def test_a_sweeper_of_another_version_takes_nobodys_audit_away(
    start_worker, submit, rows, migrate_to
):
    submit("The mill opened in 1900.")
    worker = start_worker("maintenance")
    held = "lease_owner = 'w', lease_expires_at = now() - interval '1 hour', lease_begun = true"
    rows(f"UPDATE halldetect.audits SET {held} RETURNING id")
    migrate_to(NEWER)
    with pytest.raises(Exception, match=f"revision {NEWER}"):
        worker.sweep()
    assert rows("SELECT faults, lease_owner FROM halldetect.audits") == [(0, "w")]


def test_a_worker_waits_for_the_migration_of_an_older_database(
    start_worker, submit, states, database, worker_rows, monkeypatch
):
    monkeypatch.setattr("worker.models._FIRST_PAUSE_SECONDS", 0.1)
    submit("The mill opened in 1900.")
    downgrade(database, "-1")
    worker = start_worker("extraction")
    wait_for_report(worker_rows, WorkerState.FAILED, "db.migrate upgrade")
    assert worker.run(Stage.EXTRACTION).audits == 0
    assert states() == [("queued", 0, 0)]
    upgrade(database)
    # It tries again by itself, after a while.
    wait_for_report(worker_rows, WorkerState.READY, "")
    assert worker.run(Stage.EXTRACTION).audits == 1
    assert states() == [("extracted", 1, 0)]


def test_tables_that_are_not_there_are_no_fault_of_an_audit(
    start_worker, submit, states, sessions, worker_rows
):
    submit("The mill opened in 1900.")
    worker = start_worker("extraction")
    wait_for_report(worker_rows, WorkerState.READY, "")
    with sessions.begin() as session:
        session.execute(text("ALTER TABLE halldetect.extractions RENAME TO moved"))
    summary = worker.run(Stage.EXTRACTION)
    assert summary.ended is Ended.OTHER_VERSION
    assert "halldetect.extractions" in summary.error
    assert "halldetect doctor" in summary.error
    assert [(status, faults) for status, _, faults in states()] == [("queued", 0)]


def test_a_worker_that_ends_while_it_looks_at_the_tables_leaves_no_connection_open(
    start_worker, rows, monkeypatch
):
    looks, goes_on = threading.Event(), threading.Event()
    look = process_module.require_this_version

    def look_and_wait(session):
        look(session)
        looks.set()
        goes_on.wait()

    def others():
        return set(
            rows(
                "SELECT pid FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    before = others()
    monkeypatch.setattr(process_module, "require_this_version", look_and_wait)
    worker = start_worker("extraction", waits=False)
    looks.wait()
    ending = threading.Thread(target=worker.stop)
    ending.start()
    ending.join(timeout=1)
    assert ending.is_alive()
    goes_on.set()
    ending.join()
    while others() - before:
        threading.Event().wait(0.05)
