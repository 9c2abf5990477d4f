"""Postgres or Redis gone in the middle: nothing half-written, nobody at fault, the worker lives."""

from __future__ import annotations

import threading

import psycopg
import pytest
import redis
from sqlalchemy.engine import make_url

from db.engine import DatabaseUnavailable
from db.line import Stage
from db.workers import live_workers
from queues.celery_app import make_app
from queues.names import Queue
from queues.wake_ups import WakeUps
from worker.counters import Counters
from worker.lease_renewal import LeaseRenewal
from worker.metrics import WorkerMetrics
from worker.recovery import Sweeper
from worker.run import Ended
from worker.waking import Waker

HELD = "SELECT custom_id FROM halldetect.audits WHERE lease_owner IS NOT NULL"
BEGUN = "SELECT custom_id FROM halldetect.audits WHERE lease_begun"


class Outage:
    """Refuses all connections to a database, as if its server was gone."""

    def __init__(self, url):
        self._server = make_url(url).set(database="postgres").render_as_string(False)
        self._name = make_url(url).database

    def begin(self):
        self._allow(False)
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (self._name,),
            )

    def end(self):
        self._allow(True)

    def _allow(self, is_allowed):
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(
                f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS {str(is_allowed).lower()}'
            )


@pytest.fixture
def outage(database):
    outage = Outage(database)
    yield outage
    outage.end()


def wait_until(holds):
    while not holds():
        threading.Event().wait(0.05)


@pytest.mark.parametrize("stage", list(Stage))
def test_without_postgres_the_run_ends_and_the_audits_come_back_blameless(
    start_worker,
    submit,
    states,
    rows,
    nothing_is_held,
    encoder,
    extractor,
    outage,
    stage,
    monkeypatch,
):
    monkeypatch.setattr("worker.pauses._FIRST_SECONDS", 0.01)
    submit(*[f"The mill opened in {1900 + n}." for n in range(4)])
    process = start_worker("extraction", "nli", load_audits=2, extraction_load_audits=2)
    if stage is Stage.VERIFICATION:
        process.run(Stage.EXTRACTION)
    encoder.before = extractor.before = lambda _: outage.begin()
    summary = process.run(stage)
    assert (summary.audits, summary.ended) == (0, Ended.NO_DATABASE)
    assert "the database cannot be used" in summary.error
    # A wake-up that comes meanwhile ends at once.
    assert process.run(stage).ended is Ended.NO_DATABASE
    outage.end()
    wait_until(nothing_is_held)
    assert {(status, faults) for status, _, faults in states()} == {(stage.awaited_in.value, 0)}
    if stage is Stage.VERIFICATION:
        assert rows("SELECT count(*) FROM halldetect.verifications") == [(0,)]
        assert rows("SELECT count(*) FROM halldetect.probabilities") == [(0,)]
    else:
        assert rows("SELECT count(*) FROM halldetect.extractions") == [(0,)]
    encoder.before = extractor.before = lambda _: None
    assert process.run(stage).audits == 4


def test_a_worker_starts_without_postgres_and_reports_when_it_comes(
    start_worker, outage, worker_rows
):
    outage.begin()
    process = start_worker("nli")
    assert process.run(Stage.VERIFICATION).ended is Ended.NO_DATABASE
    outage.end()
    wait_until(worker_rows)


def test_without_redis_the_work_goes_on(start_worker, submit, states, monkeypatch, refusing_port):
    submit(*[f"The mill opened in {1900 + n}." for n in range(5)])
    process = start_worker("extraction", "nli", load_audits=2, extraction_load_audits=2)
    app = make_app(f"redis://127.0.0.1:{refusing_port}/0", "test")
    app.conf.broker_transport_options = {"max_retries": 0}
    monkeypatch.setattr(process._waker, "_wake_ups", WakeUps(app))
    for stage in Stage:
        assert process.run(stage).ended is Ended.NOTHING_LEFT
    assert states() == [("completed", 2, 0)] * 5


def test_the_renewal_thread_survives_whatever_a_round_raises(sessions):
    rounds = []
    enough = threading.Event()

    def report(session):
        rounds.append(session)
        if len(rounds) == 3:
            enough.set()
        raise RuntimeError("a fault of ours")

    renewal = LeaseRenewal(
        sessions, lease_seconds=1, report=report, metrics=WorkerMetrics(Counters())
    )
    renewal.start()
    assert enough.wait(timeout=60)
    renewal.stop()


@pytest.fixture
def sweeper(sessions, wake_ups):
    return Sweeper(
        sessions,
        Waker(sessions, wake_ups),
        max_attempts=3,
        metrics=WorkerMetrics(Counters()),
    )


def test_a_worker_reports_how_long_it_has_not_swept(start_worker, sessions):
    def unswept():
        with sessions.begin() as session:
            return {worker.queues[0]: worker.unswept_seconds for worker in live_workers(session)}

    process = start_worker("maintenance")
    start_worker("nli")
    process._sweeper._swept_at -= 1000
    process._renewal.report_soon()
    wait_until(lambda: (unswept().get("maintenance") or 0) >= 1000)
    process.sweep()
    process._renewal.report_soon()
    wait_until(lambda: unswept()["maintenance"] < 1000)
    wait_until(lambda: "nli" in unswept())
    assert unswept()["nli"] is None


def lose_worker(rows, custom_id):
    rows(
        "UPDATE halldetect.audits SET lease_owner = 'nli@lost/1', fencing_token = 1, attempts = 1,"
        " lease_begun = true, lease_expires_at = now() - interval '1 second'"
        " WHERE custom_id = :custom_id RETURNING id",
        custom_id=custom_id,
    )


def test_the_sweeper_brings_back_what_a_lost_worker_held(sweeper, submit, rows, wake_ups):
    submit("The mill opened in 1900.", "It closed in 1950.")
    lose_worker(rows, "r2")
    sweeper.sweep()
    assert rows("SELECT faults, worker_lost, lease_owner FROM halldetect.audits ORDER BY id") == [
        (0, False, None),
        (1, True, None),
    ]
    assert wake_ups.queued(Queue.EXTRACTION) == 1


def test_an_audit_whose_worker_was_lost_shares_no_load(start_worker, submit, rows, encoder):
    submit("The mill opened in 1900.", "A heron saw it.", "Nobody was hurt.")
    process = start_worker("extraction", "nli")
    process.run(Stage.EXTRACTION)
    lose_worker(rows, "r2")
    process.sweep()
    with_heron = []

    def note(batch):
        if encoder.has_word(batch, "heron"):
            with_heron.append(
                rows(
                    "SELECT custom_id FROM halldetect.audits WHERE status = 'extracted'"
                    " AND lease_owner IS NOT NULL AND verification_started_at ="
                    " (SELECT verification_started_at FROM halldetect.audits"
                    "  WHERE custom_id = 'r2')"
                )
            )

    encoder.before = note
    summary = process.run(Stage.VERIFICATION)
    assert (summary.loads, summary.audits) == (3, 3)
    assert with_heron == [[("r2",)]]


def test_a_poison_audit_takes_no_neighbour_with_it(start_worker, submit, rows, encoder):
    submit("A heron saw it.", "The mill opened in 1900.", "Nobody was hurt.")
    process = start_worker("extraction", "nli")
    process.run(Stage.EXTRACTION)
    lose_worker(rows, "r1")
    process.sweep()
    while_it_runs = []

    def note(batch):
        if encoder.has_word(batch, "heron"):
            wait_until(lambda: rows(HELD) != [("r1",)])  # the load ahead is claimed
            while_it_runs.extend(rows(BEGUN))

    encoder.before = note
    process.run(Stage.VERIFICATION)
    assert while_it_runs == [("r1",)]


def test_redis_that_lost_everything_is_filled_again_and_never_overfilled(
    sweeper, submit, wake_ups, redis_url
):
    submit("The mill opened in 1900.")
    wake_ups.send(Stage.EXTRACTION, reason="submitted")
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    for _ in range(4):
        sweeper.sweep()
    assert wake_ups.queued(Queue.EXTRACTION) == 1
    assert wake_ups.queued(Queue.NLI) == 0


def test_after_an_outage_holders_may_renew_before_anything_is_taken_away(
    sweeper, submit, rows, outage
):
    submit("The mill opened in 1900.")
    lose_worker(rows, "r1")
    outage.begin()
    with pytest.raises(DatabaseUnavailable):
        sweeper.sweep()
    outage.end()
    faults = "SELECT faults FROM halldetect.audits"
    sweeper.sweep()
    assert rows(faults) == [(0,)]
    sweeper.sweep()
    assert rows(faults) == [(1,)]


def test_as_many_wake_ups_as_workers_live(sweeper, submit, rows, wake_ups):
    submit(*[f"The mill opened in {1900 + n}." for n in range(5)])
    for number, state in enumerate(["ready", "ready", "loading", "failed"]):
        rows(
            "INSERT INTO halldetect.workers (name, queues, pid, host, state)"
            " VALUES (:name, '{extraction}', 1, 'box', :state) RETURNING name",
            name=f"extraction@box/{number}",
            state=state,
        )
    for _ in range(6):
        sweeper.sweep()
    assert wake_ups.queued(Queue.EXTRACTION) == 3  # a worker that failed takes none
