"""Messages that come twice, and leases that run out while their owner works: real processes."""

from __future__ import annotations

import signal

import redis
from celery_processes import wait_until
from sqlalchemy import text

from db.line import Stage
from db.models import WorkerState
from queues.names import Queue

BACKENDS = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
OWNER = "SELECT lease_owner, lease_expires_at FROM halldetect.audits"
RENEWED_JUST_NOW = (
    "SELECT lease_expires_at > clock_timestamp() + interval '5 seconds' FROM halldetect.audits"
)


def test_one_message_twice_at_once_to_two_workers_is_one_result(
    start_celery, start_worker, submit, wake_ups, redis_url, states, rows, worker_rows
):
    submit(*[f"The mill opened in {1900 + n}." for n in range(6)])
    start_worker("extraction").run(Stage.EXTRACTION)
    assert wake_ups.queued(Queue.NLI) == 1
    with redis.Redis.from_url(redis_url) as client:
        [message] = client.lrange("nli", 0, -1)
        client.lpush("nli", message, message)
    # In one run each: what is handed back when its time is up is claimed once more.
    workers = start_celery("nli", "nli-2", load_audits=2, run_seconds=600)
    # A run may wake another one, so that the number of runs does not tell when all is done.
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    wait_until(lambda: sum(len(worker.events("run ended")) for worker in workers) >= 3)
    assert states() == [("completed", 2, 0)] * 6
    assert rows("SELECT DISTINCT fencing_token FROM halldetect.audits") == [(2,)]
    assert rows("SELECT count(*) FROM halldetect.verifications") == [(6,)]
    # It is one message: the same task, more than once.
    tasks = [run["task_id"] for worker in workers for run in worker.events("woken")]
    assert len(tasks) > len(set(tasks))


def test_a_message_given_out_again_while_it_is_worked_on_finds_the_lease_held(
    start_faulty, start_worker, submit, states, rows, faults, is_waiting, worker_rows
):
    submit("The ferry sails at noon.", "The mill opened in 1900.")
    start_worker("extraction").run(Stage.EXTRACTION)
    first, second = start_faulty("nli", "nli-2", variables={"FAULTS_VISIBILITY_SECONDS": "2"})
    workers = [first, second]
    wait_until(lambda: any(map(is_waiting, workers)))
    # Not acknowledged for longer than the timeout, the message is given to the other one, too.
    busy, idle = workers if is_waiting(first) else workers[::-1]
    (task,) = {run["task_id"] for run in busy.events("woken")}
    wait_until(lambda: task in {run["task_id"] for run in idle.events("run ended")})
    again = [run for run in idle.events("run ended") if run["task_id"] == task]
    assert {(run["loads"], run["audits"]) for run in again} == {(0, 0)}
    assert states() == [("extracted", 2, 0)] * 2
    (faults / "go").touch()
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    assert states() == [("completed", 2, 0)] * 2
    assert rows("SELECT count(*) FROM halldetect.verifications") == [(2,)]


def test_a_job_longer_than_its_lease_is_left_alone_while_its_worker_lives(
    start_faulty, start_worker, submit, states, rows, faults, is_waiting
):
    submit("The ferry sails at noon.")
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    (worker,) = start_faulty("nli", lease_seconds=8)
    wait_until(lambda: is_waiting(worker))
    (claimed,) = rows(OWNER)
    expiries = set()

    def is_long_over():
        # On a machine that stood still the lease may be over, and is then lost by right: look
        # just after it was renewed.
        if rows(RENEWED_JUST_NOW) == [(True,)]:
            here.sweep()
            expiries.update(expiry for _, expiry in rows(OWNER))
        return len(expiries) >= 3 and rows(
            "SELECT verification_started_at + interval '10 seconds' < clock_timestamp()"
            " FROM halldetect.audits"
        ) == [(True,)]

    wait_until(is_long_over)
    assert [owner for owner, _ in rows(OWNER)] == [claimed[0]]
    (faults / "go").touch()
    wait_until(lambda: states() == [("completed", 2, 0)])
    assert rows("SELECT fencing_token FROM halldetect.audits") == [(2,)]


def test_a_worker_that_was_frozen_past_its_lease_writes_nothing(
    start_faulty, start_worker, submit, states, rows, faults, is_waiting
):
    submit("The ferry sails at noon.")
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    (frozen,) = start_faulty("nli", lease_seconds=4)
    wait_until(lambda: is_waiting(frozen))
    frozen.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: here.sweep() or states() == [("extracted", 2, 1)])
    here.sweep()
    assert states() == [("extracted", 2, 1)]  # reclaimed and charged once
    (quick,) = start_faulty("nli-2")
    wait_until(lambda: here.sweep() or is_waiting(quick))
    (faults / "go").touch()
    wait_until(lambda: states() == [("completed", 3, 1)])
    written = "SELECT * FROM halldetect.audits, halldetect.verifications"
    result = rows(written)
    frozen.process.send_signal(signal.SIGCONT)
    # It finds its lease gone before it writes or as it does.
    wait_until(lambda: frozen.events("run ended"))
    assert [run["audits"] for run in frozen.events("run ended")] == [0] * len(
        frozen.events("run ended")
    )
    assert rows(written) == result
    assert rows("SELECT count(*) FROM halldetect.probabilities") == [(1,)]


def test_a_worker_that_was_frozen_while_it_renewed_its_lease_keeps_nobody_from_it(
    start_faulty, start_worker, submit, states, rows, sessions, faults, is_waiting
):
    submit("The ferry sails at noon.")
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    (frozen,) = start_faulty("nli", lease_seconds=4)
    wait_until(lambda: is_waiting(frozen))
    with sessions.begin() as session:
        session.execute(text("SELECT FROM halldetect.audits FOR UPDATE"))
        wait_until(lambda: rows(f"SELECT FROM {BACKENDS} AND wait_event_type = 'Lock'"))
        frozen.process.send_signal(signal.SIGSTOP)
    # Its renewal has gone through on the server, and waits to be committed with the row locked.
    wait_until(lambda: rows(f"SELECT FROM {BACKENDS} AND state = 'idle in transaction'"))
    wait_until(lambda: here.sweep() or states() == [("extracted", 2, 1)])
    (faults / "go").touch()
    frozen.process.send_signal(signal.SIGCONT)
    wait_until(lambda: frozen.events("run ended"))
    assert frozen.events("run ended")[0]["audits"] == 0
    assert frozen.process.poll() is None


def test_a_worker_without_its_model_leaves_the_work_to_the_others(
    start_celery, start_worker, submit, wake_ups, worker_rows, states, tmp_path
):
    submit(*[f"The mill opened in {1900 + n}." for n in range(4)])
    missing = tmp_path / "encoder"
    (broken,) = start_celery("nli", nli_model=missing)
    wait_until(lambda: broken.events("Canceling queue nli"))
    (sound,) = start_celery("nli-2")
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    # A message that the broken one had asked for before is put back.
    wait_until(lambda: here.sweep() or states() == [("completed", 2, 0)] * 4)
    wait_until(lambda: WorkerState.FAILED in dict(worker_rows()))
    assert str(missing) in dict(worker_rows())[WorkerState.FAILED]
    assert broken.process.poll() is None
    # A run that has stored everything has yet to end.
    wait_until(lambda: sum(run["audits"] for run in sound.events("run ended")) == 4)
    assert sum(run["audits"] for run in broken.events("run ended")) == 0


def test_a_worker_whose_model_does_not_come_back_ends_itself(
    start_faulty, start_worker, submit, states, nothing_is_held
):
    submit("The ferry sails at noon.", "The mill opened in 1900.")
    here = start_worker("extraction", "maintenance")
    here.run(Stage.EXTRACTION)
    (hung,) = start_faulty("nli", lease_seconds=4, variables={"FAULTS_HUNG_SECONDS": "1"})
    assert hung.process.wait() == 70
    assert hung.events("a model does not come back")[0]["model"] == "nli-minilm/model.onnx"
    wait_until(lambda: here.sweep() or nothing_is_held())
    assert states() == [("extracted", 2, 1)] * 2
