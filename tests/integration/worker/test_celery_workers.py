"""Workers as Celery starts them, one process each, with the bundled encoder."""

from __future__ import annotations

import signal
import socket

import pytest
from celery_processes import wait_until

from db.line import Stage
from db.models import WorkerState
from halldetect.model_loading import BUNDLED_NLI
from queues.names import Queue


def test_workers_share_the_work_and_do_none_of_it_twice(
    start_faulty, submit, wake_ups, worker_rows, states, rows, faults, is_waiting
):
    names = ["extraction", "extraction-2", "nli", "nli-2"]
    sizes = {"load_audits": 2, "extraction_load_audits": 2, "run_seconds": 600}
    workers = start_faulty(*names, **sizes)
    wait_until(lambda: worker_rows() == [(WorkerState.READY, None)] * 4)
    batch = submit(*[f"The barge met the ferry in {1900 + n}. Nobody fell." for n in range(40)])
    wake_ups.send(Stage.EXTRACTION, batch_id=batch, reason="submitted")
    # While one is busy the other is woken, and neither is so quick that nothing is left.
    wait_until(lambda: all(map(is_waiting, workers[:2])))
    (faults / "go-barge").touch()
    wait_until(lambda: all(map(is_waiting, workers[2:])))
    (faults / "go").touch()
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    # Each audit was claimed once a stage.
    assert states() == [("completed", 2, 0)] * 40
    assert rows("SELECT DISTINCT fencing_token FROM halldetect.audits") == [(2,)]
    assert [worker.end() for worker in workers] == [0] * 4
    assert worker_rows() == []
    shares = [sum(run["audits"] for run in worker.events("run ended")) for worker in workers]
    assert shares[0] + shares[1] == shares[2] + shares[3] == 40
    assert min(shares) > 0


LONG_SOURCE = " ".join(f"The mill made {n} sacks of flour that year." for n in range(400))
LONG_RESPONSE = " ".join(f"The mill made {n} sacks of flour." for n in range(30))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_ends_in_the_middle_of_a_load(
    start_celery, start_worker, submit, wake_ups, states, rows, nothing_is_held, number
):
    submit(LONG_RESPONSE, source=LONG_SOURCE)
    here = start_worker("extraction")
    here.run(Stage.EXTRACTION)
    assert wake_ups.queued(Queue.NLI) == 1
    (worker,) = start_celery("nli", lease_seconds=4)
    wait_until(lambda: rows("SELECT lease_begun FROM halldetect.audits") == [(True,)])
    code = worker.end(number)
    if number is signal.SIGTERM:
        assert code == 0
        assert nothing_is_held()
        [(status, attempts, faults)] = states()
        assert (status, faults) == ("extracted", 0)
        assert attempts in (1, 2)  # it may not have got past the source
    else:
        assert not nothing_is_held()
        expired = "SELECT lease_expires_at < clock_timestamp() FROM halldetect.audits"
        wait_until(lambda: rows(expired) == [(True,)])
        here.sweep()
        assert states() == [("extracted", 2, 1)]
        assert rows("SELECT worker_lost FROM halldetect.audits") == [(True,)]


def test_a_worker_whose_port_for_figures_is_taken_ends_and_says_what_to_set(start_celery):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (worker,) = start_celery("maintenance", metrics_port=port)
        assert worker.process.wait() == 1
    last = worker.log.read_text(encoding="utf-8").splitlines()[-1]
    assert last.startswith(f"the worker's metrics cannot be served at 127.0.0.1:{port}")
    assert "HALLDETECT_METRICS_PORT" in last


def test_a_worker_without_its_model_says_so_and_leaves_wake_ups_to_others(
    start_celery, start_worker, submit, wake_ups, worker_rows, states, tmp_path
):
    submit("The mill opened in 1900.")
    folder = tmp_path / "encoder"
    (worker,) = start_celery("nli", nli_model=folder)
    wait_until(lambda: worker.events("Canceling queue nli"))
    start_worker("extraction").run(Stage.EXTRACTION)
    # A message that it had asked for before may come, and is put back.
    wait_until(lambda: wake_ups.queued(Queue.NLI) == 1)
    wait_until(lambda: WorkerState.FAILED in dict(worker_rows()))
    (error,) = [error for state, error in worker_rows() if state is WorkerState.FAILED]
    assert str(folder) in error
    assert worker.process.poll() is None
    folder.symlink_to(BUNDLED_NLI, target_is_directory=True)
    wait_until(lambda: states() == [("completed", 2, 0)])
    assert wake_ups.queued(Queue.NLI) == 0
