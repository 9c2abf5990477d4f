"""Rescorings as a maintenance worker does them: whole, resumable, once, and without any model."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from rescored_audits import make_policy, request_rescoring, rescore
from sqlalchemy import select, text
from stored_audits import complete_waiting, submit_batch

from db.driver import driver_connection
from db.engine import DatabaseUnavailable
from db.models import Audit, RescoringState, Scoring
from db.policies import get_policy
from db.rescorings import Skip, get_rescoring, rescoring_lock
from queues.celery_app import make_app
from queues.names import Queue
from queues.wake_ups import WakeUps
from worker import rescoring as rescoring_module
from worker.rescoring import Rescorer, RescoringEnded

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks. A dragon lives in it."


@pytest.fixture
def audits(sessions, auditor):
    """Complete five audits, one of which has no claims, and return their ids."""
    submit_batch(sessions, TRUE, FALSE, "Thanks!", f"{TRUE} {FALSE}", FALSE)
    complete_waiting(sessions, auditor)
    with sessions.begin() as session:
        return list(session.scalars(select(Audit.id).order_by(Audit.id)))


@pytest.fixture
def policy(sessions):
    with sessions.begin() as session:
        return make_policy(session, "strict", "contrastive", "fedscore", margin=0.2)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr("db.stored_matrices.MOST_AUDITS", 1)


@pytest.fixture
def wake_ups(redis_url):
    return WakeUps(make_app(redis_url, "test"))


@pytest.fixture
def make_rescorer(engine, wake_ups):
    def make(run_seconds=600, stopping=False):
        event = threading.Event()
        if stopping:
            event.set()
        return Rescorer(engine, wake_ups, run_seconds=run_seconds, stopping=event)

    return make


@pytest.fixture
def status(sessions):
    def read(rescoring_id):
        with sessions.begin() as session:
            return get_rescoring(session, rescoring_id)

    return read


@pytest.fixture
def scored_ids(sessions):
    def read(policy):
        with sessions.begin() as session:
            of_policy = select(Scoring.audit_id).where(Scoring.policy_id == policy.id)
            return sorted(session.scalars(of_policy))

    return read


def counts(found):
    return found.total, found.scored, found.present, found.skipped


@pytest.fixture
def before_storing(monkeypatch):
    """Call a function with the session and the number of the call before each chunk is stored."""

    def install(function):
        store, calls = rescoring_module.store_scorings, []

        def hooked(session, *arguments):
            calls.append(None)
            function(session, len(calls))
            return store(session, *arguments)

        monkeypatch.setattr(rescoring_module, "store_scorings", hooked)

    return install


def test_every_audit_of_a_selection_is_scored(engine, sessions, audits, policy, scored_ids):
    done = rescore(engine, sessions, policy)
    assert done.state is RescoringState.COMPLETED
    assert done.finished_at is not None
    assert counts(done) == (5, 5, 0, 0)
    assert scored_ids(policy) == audits
    with sessions.begin() as session:
        thanks = session.get(Scoring, (audits[2], policy.id))
        assert (thanks.response_score, thanks.label, thanks.claim_values) == (None, None, [])


def test_a_score_of_one_is_graded_under_another_policy_without_a_model(engine, sessions, auditor):
    submit_batch(
        sessions,
        "Lot A has 10 cars. Lot B has 20 cars. Lot C has 5 cars.",
        source="Lot A has 10 cars. Lot B has 20 cars.",
        policy="paper",
    )
    complete_waiting(sessions, auditor)
    with sessions.begin() as session:
        [audit] = session.scalars(select(Audit))
        assert (audit.fedscore, audit.supported, audit.deciding_claim) == (1.0, 2, 2)
        mean = get_policy(session, "mean")
    assert counts(rescore(engine, sessions, mean)) == (1, 1, 0, 0)
    with sessions.begin() as session:
        graded = session.get(Scoring, (audit.id, mean.id))
        assert 0.1 < graded.response_score < 0.9
        assert graded.deciding_claim is None


def test_only_the_selection_is_scored(engine, sessions, audits, policy, scored_ids):
    done = rescore(engine, sessions, policy, ids=(audits[1], audits[4]))
    assert counts(done) == (2, 2, 0, 0)
    assert scored_ids(policy) == [audits[1], audits[4]]


def test_an_empty_selection_is_completed_at_once(engine, sessions, audits, policy):
    done = rescore(engine, sessions, policy, custom_id="nobody's")
    assert done.state is RescoringState.COMPLETED
    assert counts(done) == (0, 0, 0, 0)


def test_the_same_policy_again_stores_nothing(engine, sessions, audits, policy, scored_ids):
    rescore(engine, sessions, policy, ids=tuple(audits[:2]))
    again = rescore(engine, sessions, policy)
    assert counts(again) == (5, 3, 2, 0)
    assert counts(rescore(engine, sessions, policy)) == (5, 0, 5, 0)
    assert scored_ids(policy) == audits


def test_the_score_of_an_audits_own_policy_stands_where_it_is(engine, sessions, audits, scored_ids):
    with sessions.begin() as session:
        own = get_policy(session, "embedded")
    assert counts(rescore(engine, sessions, own)) == (5, 0, 5, 0)
    assert scored_ids(own) == []


def test_a_run_whose_time_is_up_leaves_the_rest_to_a_successor(
    small_chunks, sessions, audits, policy, make_rescorer, wake_ups, status, scored_ids
):
    rescoring_id = request_rescoring(sessions, policy)
    for done in range(1, 5):
        assert make_rescorer(run_seconds=0).run(rescoring_id) is RescoringEnded.TIME_IS_UP
        assert wake_ups.queued(Queue.MAINTENANCE) == done
        assert scored_ids(policy) == audits[:done]
        assert status(rescoring_id).state is RescoringState.RUNNING
    assert make_rescorer(run_seconds=0).run(rescoring_id) is RescoringEnded.COMPLETED
    assert make_rescorer(run_seconds=0).run(rescoring_id) is RescoringEnded.OVER
    assert wake_ups.queued(Queue.MAINTENANCE) == 4
    assert counts(status(rescoring_id)) == (5, 5, 0, 0)


def test_a_worker_that_stops_leaves_everything_to_a_successor(
    sessions, audits, policy, make_rescorer, wake_ups, scored_ids
):
    rescoring_id = request_rescoring(sessions, policy)
    assert make_rescorer(stopping=True).run(rescoring_id) is RescoringEnded.STOPPING
    assert wake_ups.queued(Queue.MAINTENANCE) == 1
    assert scored_ids(policy) == []


def test_a_run_that_is_cut_off_goes_on_where_it_was(
    small_chunks, sessions, audits, policy, make_rescorer, before_storing, status, scored_ids
):
    def cut_off(session, call):
        if call == 3:
            session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    before_storing(cut_off)
    rescoring_id = request_rescoring(sessions, policy)
    with pytest.raises(DatabaseUnavailable):
        make_rescorer().run(rescoring_id)
    assert status(rescoring_id).last_audit_id == audits[1]
    assert scored_ids(policy) == audits[:2]
    assert make_rescorer().run(rescoring_id) is RescoringEnded.COMPLETED
    assert counts(status(rescoring_id)) == (5, 5, 0, 0)
    assert scored_ids(policy) == audits


def test_a_server_that_is_lost_within_a_copy_is_called_by_its_name(
    sessions, audits, policy, make_rescorer, monkeypatch
):
    def cut_off_before_the_copy(session):
        connection = driver_connection(session)
        with sessions.begin() as other:
            other.execute(
                text("SELECT pg_terminate_backend(:pid)"), {"pid": connection.info.backend_pid}
            )
        return connection

    monkeypatch.setattr("db.scorings.driver_connection", cut_off_before_the_copy)
    with pytest.raises(DatabaseUnavailable):
        make_rescorer().run(request_rescoring(sessions, policy))


def test_audits_that_the_policy_does_not_fit_are_skipped_and_counted(
    engine, sessions, audits, make_auditor, scored_ids
):
    submit_batch(sessions, FALSE)
    complete_waiting(sessions, make_auditor(preselected_spans=1))
    with sessions.begin() as session:
        # Pre-selection takes single sentences, never the whole source.
        whole = make_policy(session, "whole", granularities=[1])
        lacking = make_policy(session, "lacking", granularities=[1024])
        session.execute(
            text("DELETE FROM halldetect.probabilities WHERE audit_id = :id"), {"id": audits[1]}
        )
    done = rescore(engine, sessions, whole)
    assert done.state is RescoringState.COMPLETED
    assert counts(done) == (6, 4, 0, 2)
    assert done.skips == {
        "probabilities_pruned": Skip(1, audits[1]),
        "spans_not_scored": Skip(1, audits[-1] + 1),
    }
    done = rescore(engine, sessions, lacking)
    assert counts(done) == (6, 1, 0, 5)
    assert done.skips == {
        "granularities_missing": Skip(4, audits[0]),
        "probabilities_pruned": Skip(1, audits[1]),
    }
    assert scored_ids(lacking) == [audits[2]]  # without claims there is nothing to read


def test_skips_add_up_over_chunks(small_chunks, engine, sessions, audits):
    with sessions.begin() as session:
        lacking = make_policy(session, "lacking", granularities=[1024])
    done = rescore(engine, sessions, lacking)
    assert done.skips == {"granularities_missing": Skip(4, audits[0])}
    assert counts(done) == (5, 1, 0, 4)


def test_two_rescorings_of_one_selection_at_once_store_every_score_once(
    small_chunks, sessions, audits, policy, make_rescorer, status, scored_ids
):
    both = [request_rescoring(sessions, policy) for _ in range(2)]
    start = threading.Barrier(2)

    def run(rescoring_id):
        start.wait()
        return make_rescorer().run(rescoring_id)

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(run, both))
    assert ends == [RescoringEnded.COMPLETED] * 2
    assert scored_ids(policy) == audits
    one, two = (status(rescoring_id) for rescoring_id in both)
    assert one.scored + two.scored == 5
    assert one.present + two.present == 5


def test_what_another_rescoring_stores_meanwhile_is_present(
    engine, sessions, audits, policy, make_rescorer, before_storing, status
):
    rescoring_id = request_rescoring(sessions, policy)
    other_id = request_rescoring(sessions, policy, ids=tuple(audits[:2]))

    def store_the_other_first(_, call):
        if call == 1:
            assert make_rescorer().run(other_id) is RescoringEnded.COMPLETED

    before_storing(store_the_other_first)
    make_rescorer().run(rescoring_id)
    assert counts(status(rescoring_id)) == (5, 3, 2, 0)


def test_only_one_worker_is_on_a_rescoring(
    engine, sessions, audits, policy, make_rescorer, scored_ids
):
    rescoring_id = request_rescoring(sessions, policy)
    with rescoring_lock(engine, rescoring_id) as is_ours:
        assert is_ours
        assert make_rescorer().run(rescoring_id) is RescoringEnded.HELD_ELSEWHERE
        assert scored_ids(policy) == []
    assert make_rescorer().run(rescoring_id) is RescoringEnded.COMPLETED


def test_a_worker_that_lost_its_lock_cannot_count_twice(
    small_chunks, sessions, audits, policy, make_rescorer, before_storing, status, monkeypatch
):
    @contextmanager
    def no_lock(*_):
        yield True

    monkeypatch.setattr(rescoring_module, "rescoring_lock", no_lock)
    rescoring_id = request_rescoring(sessions, policy)

    def overtake(_, call):
        if call == 2:
            assert make_rescorer().run(rescoring_id) is RescoringEnded.COMPLETED

    before_storing(overtake)
    assert make_rescorer().run(rescoring_id) is RescoringEnded.HELD_ELSEWHERE
    assert counts(status(rescoring_id)) == (5, 5, 0, 0)


def test_an_audit_that_is_deleted_meanwhile_stops_nothing(
    sessions, audits, policy, make_rescorer, before_storing, status, scored_ids
):
    def delete_one(_, call):
        if call == 1:
            with sessions.begin() as other:
                other.execute(
                    text("DELETE FROM halldetect.audits WHERE id = :id"), {"id": audits[3]}
                )

    before_storing(delete_one)
    rescoring_id = request_rescoring(sessions, policy)
    assert make_rescorer().run(rescoring_id) is RescoringEnded.COMPLETED
    assert counts(status(rescoring_id)) == (5, 4, 0, 0)
    assert scored_ids(policy) == [*audits[:3], audits[4]]


def test_an_audit_that_is_deleted_while_it_is_read_stops_nothing(
    sessions, audits, make_rescorer, status, scored_ids, monkeypatch
):
    choose, calls = rescoring_module.next_audits, []

    def choose_and_delete(session, *arguments):
        chosen = choose(session, *arguments)
        if not calls:
            with sessions.begin() as other:
                other.execute(
                    text("DELETE FROM halldetect.audits WHERE id = :id"), {"id": audits[3]}
                )
        calls.append(None)
        return chosen

    monkeypatch.setattr(rescoring_module, "next_audits", choose_and_delete)
    with sessions.begin() as session:
        weighted = make_policy(session, "weighted", aggregation="weighted", granularities=[1])
    rescoring_id = request_rescoring(sessions, weighted)
    assert make_rescorer().run(rescoring_id) is RescoringEnded.COMPLETED
    assert counts(status(rescoring_id)) == (5, 4, 0, 0)
    assert scored_ids(weighted) == [*audits[:3], audits[4]]


def test_a_rescoring_that_cannot_go_on_fails_with_the_reason(
    sessions, audits, policy, make_rescorer, monkeypatch, status
):
    def fault(*_):
        raise ValueError("claim values must lie between -1 and 1")

    monkeypatch.setattr(rescoring_module, "score_fitting", fault)
    rescoring_id = request_rescoring(sessions, policy)
    assert make_rescorer().run(rescoring_id) is RescoringEnded.FAILED
    failed = status(rescoring_id)
    assert failed.state is RescoringState.FAILED
    assert failed.error == "ValueError: claim values must lie between -1 and 1"
    assert make_rescorer().run(rescoring_id) is RescoringEnded.OVER


def test_a_rescoring_whose_wake_up_was_lost_is_woken_once(
    sessions, audits, policy, make_rescorer, wake_ups
):
    rescoring_id = request_rescoring(sessions, policy)
    make_rescorer().wake_stalled()
    assert wake_ups.queued(Queue.MAINTENANCE) == 0
    with sessions.begin() as session:
        session.execute(
            text("UPDATE halldetect.rescorings SET active_at = now() - interval '2 minutes'")
        )
    make_rescorer().wake_stalled()
    make_rescorer().wake_stalled()
    assert wake_ups.queued(Queue.MAINTENANCE) == 1
    make_rescorer().run(rescoring_id)
    with sessions.begin() as session:
        session.execute(
            text("UPDATE halldetect.rescorings SET active_at = now() - interval '2 minutes'")
        )
    make_rescorer().wake_stalled()
    assert wake_ups.queued(Queue.MAINTENANCE) == 1


RESCORE = """
import json, sys, threading
import worker.app
from worker.rescoring import Rescorer
from db.engine import make_engine
engine = make_engine(sys.argv[1])
ended = Rescorer(engine, None, run_seconds=600, stopping=threading.Event()).run(int(sys.argv[2]))
models = ("torch", "onnxruntime", "llama_cpp", "transformers", "tokenizers")
print(json.dumps([ended.name, [name for name in models if name in sys.modules]]))
"""


def test_no_model_and_no_library_of_one_is_loaded(
    database, redis_url, sessions, audits, policy, scored_ids
):
    rescoring_id = request_rescoring(sessions, policy)
    done = subprocess.run(
        [sys.executable, "-c", RESCORE, database, str(rescoring_id)],
        env={"DATABASE_URL": database, "REDIS_URL": redis_url, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["COMPLETED", []]
    assert scored_ids(policy) == audits
