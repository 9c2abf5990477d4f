"""A rescoring counts what was done to it, in steps that nobody can take twice."""

from __future__ import annotations

import pytest
from rescored_audits import make_policy
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError

from db.models import RescoringState
from db.rescorings import (
    ChunkOutcome,
    RescoringOvertaken,
    Skip,
    advance_rescoring,
    begin_rescoring,
    claim_stalled_rescorings,
    complete_rescoring,
    create_rescoring,
    fail_rescoring,
    get_rescoring,
    rescoring_lock,
)
from db.selections import Selection
from db.storable_texts import LONGEST_ERROR


@pytest.fixture
def job(service, sessions):
    """Return the id of a rescoring of three audits."""
    service.submit("The mill opened.", "The mill burnt.", "The mill closed.")
    service.run()
    with sessions.begin() as session:
        return create_rescoring(session, make_policy(session, "strict"), Selection()).id


@pytest.fixture
def step(sessions):
    def advance(job, after, last, scored=0, present=0, **skips):
        with sessions.begin() as session:
            advance_rescoring(session, job, after, ChunkOutcome(last, scored, present, skips))

    return advance


@pytest.fixture
def status(sessions):
    def read(job):
        with sessions.begin() as session:
            return get_rescoring(session, job)

    return read


def test_a_new_rescoring_waits_with_its_policy_and_selection(job, status):
    found = status(job)
    assert found.state is RescoringState.WAITING
    assert not found.is_over
    assert found.policy.policy.name == "strict"
    assert found.selection.selection == Selection()
    assert (found.total, found.scored, found.present, found.skipped) == (3, 0, 0, 0)
    assert status(job + 1) is None


def test_chunks_add_up(job, sessions, step, status):
    with sessions.begin() as session:
        assert begin_rescoring(session, job).state is RescoringState.RUNNING
    step(job, 0, 1, scored=1)
    step(job, 1, 2, late=Skip(1, 2))
    step(job, 2, 3, present=1, late=Skip(1, 3))
    found = status(job)
    assert (found.scored, found.present, found.skipped) == (1, 1, 2)
    assert found.skips == {"late": Skip(2, 2)}
    assert found.last_audit_id == 3


def test_a_step_is_taken_once_and_only_from_where_the_job_stands(job, step, status):
    step(job, 0, 2, scored=2)
    for after in (0, 1):
        with pytest.raises(RescoringOvertaken):
            step(job, after, 2, scored=2)
    assert status(job).scored == 2


def test_an_audit_that_completed_while_the_selection_was_counted_raises_the_total(
    job, step, status
):
    step(job, 0, 4, scored=4)
    assert (status(job).total, status(job).scored) == (4, 4)


def test_a_rescoring_ends_once(job, sessions, step, status):
    with sessions.begin() as session:
        complete_rescoring(session, job)
        fail_rescoring(session, job, "too late")
    found = status(job)
    assert (found.state, found.error) == (RescoringState.COMPLETED, None)
    assert found.is_over
    with sessions.begin() as session:
        assert begin_rescoring(session, job) is None
    with pytest.raises(RescoringOvertaken):
        step(job, 0, 1, scored=1)


def test_a_failure_keeps_its_reason(job, sessions, status):
    with sessions.begin() as session:
        fail_rescoring(session, job, "ValueError: wrong")
    assert (status(job).state, status(job).error) == (RescoringState.FAILED, "ValueError: wrong")


def test_of_a_long_reason_the_begin_is_kept(job, sessions, status):
    with sessions.begin() as session:
        fail_rescoring(session, job, "ValueError: \0\ud800" + "x" * 1_000_000)
    assert len(status(job).error) == LONGEST_ERROR
    assert status(job).error.startswith("ValueError: \ufffd\\ud800xxx")


def test_a_rescoring_is_stalled_when_it_was_idle_for_long(job, sessions):
    def stalled():
        with sessions.begin() as session:
            return claim_stalled_rescorings(session, 60)

    assert stalled() == []
    with sessions.begin() as session:
        session.execute(text("UPDATE halldetect.rescorings SET active_at = now() - interval '1h'"))
    assert stalled() == [job]
    assert stalled() == []
    with sessions.begin() as session:
        session.execute(text("UPDATE halldetect.rescorings SET active_at = now() - interval '1h'"))
        complete_rescoring(session, job)
    assert stalled() == []


def test_a_lock_is_held_by_one_and_ends_with_its_block(engine):
    with rescoring_lock(engine, 1) as first, rescoring_lock(engine, 1) as second:
        assert (first, second) == (True, False)
        with rescoring_lock(engine, 2) as other:
            assert other
    with rescoring_lock(engine, 1) as again:
        assert again


def test_a_lock_ends_with_its_connection(engine, sessions):
    lock = rescoring_lock(engine, 1)
    assert lock.__enter__()
    with sessions.begin() as session:
        session.execute(
            text(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )
    with pytest.raises(OperationalError):
        lock.__exit__(None, None, None)
    with rescoring_lock(engine, 1) as again:
        assert again


@pytest.mark.parametrize(
    "change",
    [
        "skips = '[]'",
        "scored = 4",
        "state = 'failed', finished_at = now()",
        "state = 'completed'",
        "scored = -1",
    ],
)
def test_the_server_refuses_what_cannot_be(job, sessions, change):
    with pytest.raises(IntegrityError, match="ck_rescorings"), sessions.begin() as session:
        session.execute(text(f"UPDATE halldetect.rescorings SET {change}"))
