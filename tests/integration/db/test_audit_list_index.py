"""What is rare or old among many audits is looked for in an index, and not in the table."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import event, text

from db.audits import AuditFilter, list_audits
from db.ownership import UNRESTRICTED, Caller
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome, Status

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FILTERS = {
    "status": Status.COMPLETED,
    "label": Label.FAITHFUL,
    "outcome": Outcome.SCORED,
    "policy": "paper",
    "submitted_from": LONG_AGO,
    "submitted_before": LONG_AGO,
}
# Those have indexes of their own.
OTHERS = {"batch_id", "custom_id"}


@pytest.fixture
def many_audits(database, service):
    """Store so many that reading an index alone is cheaper than reading the table by an index."""
    service.submit("It waits.", batch=False)
    copied = (
        "api_key_id, document_id, policy_id, response, priority, status, outcome, fedscore,"
        " label, supported, contradicted, unsupported, finished_at"
    )
    with psycopg.connect(database, autocommit=True) as connection:
        # VACUUM sees as visible to all only what is committed on the disk.
        connection.execute("SET synchronous_commit = on")
        connection.execute("INSERT INTO halldetect.api_keys (name, scopes) VALUES ('a', '{read}')")
        connection.execute(
            f"INSERT INTO halldetect.audits ({copied})"
            " SELECT 1, document_id, policy_id, repeat('It waits. ', 100), 0, 'completed',"
            " 'scored', 0.9, 'hallucinated', 0, 1, 0, now() FROM halldetect.audits,"
            " generate_series(1, 3000)"
        )
        connection.execute("VACUUM (ANALYZE) halldetect.audits")


def plan_of(engine, sessions, filters, caller):
    """Return the plan of the statement that lists audits."""
    sent = []

    def note(_, __, statement, parameters, *___):
        sent.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    with sessions.begin() as session:
        list_audits(session, filters, before_id=None, limit=101, caller=caller)
    event.remove(engine, "before_cursor_execute", note)
    [(statement, parameters)] = sent
    with engine.begin() as connection:
        for way in ("seqscan", "bitmapscan", "sort"):  # which few rows would be worth
            connection.execute(text(f"SET LOCAL enable_{way} = off"))
        connection.execute(text("SET LOCAL max_parallel_workers_per_gather = 0"))
        rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
        return "\n".join(row[0] for row in rows)


def test_every_filter_is_tried_here():
    assert FILTERS.keys() | OTHERS == {field.name for field in fields(AuditFilter)}


def test_each_filter_is_looked_for_in_the_index(many_audits, engine, sessions):
    for names in (*([name] for name in FILTERS), list(FILTERS)):
        filters = AuditFilter(**{name: FILTERS[name] for name in names})
        for caller in (UNRESTRICTED, Caller(1)):  # the key has nearly all of them
            plan = plan_of(engine, sessions, filters, caller)
            assert "Index Only Scan Backward using ix_audits_" in plan, (names, plan)
