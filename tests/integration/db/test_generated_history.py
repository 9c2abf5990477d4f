"""The history that benchmarks run on is one that the service could have written."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from db.audits import AuditFilter, list_audits, stream_results
from db.submission import submit_audit
from halldetect.record import make_record
from halldetect.rescoring import rescore
from halldetect.scoring.policy import BUILTIN_POLICIES, PAPER

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def size(database, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from history import generate

    return generate(database, claims=1500, months=3)


def test_the_history_holds_what_the_method_computes(size, database, sessions):
    assert (size.audits, size.documents) == (300, 75)
    with sessions.begin() as session:
        trails = [
            trail
            for batch_id in range(1, 100)
            for trail in stream_results(session, batch_id, with_matrix=True)
        ]
    done = [trail for trail in trails if trail.status == "completed"]
    assert len(done) > 200
    with psycopg.connect(database) as connection:
        scorings = {
            str(audit_id): values
            for audit_id, *values in connection.execute(
                "SELECT audit_id, response_score, claim_values, verdicts FROM halldetect.scorings"
            )
        }
    for trail in done:
        score = rescore(trail, BUILTIN_POLICIES[trail.policy.name])
        assert (score.response_score, score.label) == (trail.fedscore, trail.label)
        assert [claim.verdict for claim in trail.claims] == list(score.verdicts)
        assert [claim.score for claim in trail.claims] == score.values.tolist()
        for claim in trail.claims:
            assert trail.response[claim.span.start : claim.span.end] == claim.text
        again = rescore(trail, PAPER)
        if trail.policy.name != PAPER.name:
            assert scorings[trail.id] == [
                again.response_score,
                again.values.tolist(),
                list(again.verdicts),
            ]


def test_nothing_refers_to_what_is_not_there(size, database):
    with psycopg.connect(database) as connection:
        keys = connection.execute(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE contype = 'f' AND connamespace = 'halldetect'::regnamespace"
        ).fetchall()
        assert len(keys) > 5
        for number, (table, definition) in enumerate(keys):
            # A new constraint is checked against all rows.
            connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT again_{number} {definition}")
        counted = connection.execute(
            "SELECT b.total, count(a) FROM halldetect.batches b JOIN halldetect.audits a"
            " ON a.batch_id = b.id GROUP BY b.id"
        )
        assert all(total == found for total, found in counted)


def test_audits_can_be_added_to_it(size, sessions):
    with sessions.begin() as session:
        record = make_record(source="It opened.", response="It opened.")
        assert submit_audit(session, record, "embedded") == size.audits + 1
        newest = list_audits(session, AuditFilter(), before_id=None, limit=1)[0]
    assert newest.id == str(size.audits + 1)


def test_a_database_in_use_is_left_alone(size, database):
    from history import generate

    with pytest.raises(ValueError, match="holds documents"):
        generate(database, claims=100)


def test_nothing_is_written_where_something_was(database, sessions, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from history import generate

    def written():
        with psycopg.connect(database) as connection:
            return connection.execute(
                "SELECT (SELECT count(*) FROM halldetect.models),"
                " (SELECT count(*) FROM halldetect.batches),"
                " (SELECT count(*) FROM pg_inherits)"
            ).fetchone()

    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO halldetect.batches (total) VALUES (1)")
    before = written()
    with pytest.raises(ValueError, match="holds batches"):
        generate(database, claims=100, months=30)
    assert written() == before
