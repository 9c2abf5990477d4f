"""Rescorings in processes of their own: as Celery runs them, and killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rescored_audits import make_policy, request_rescoring
from sqlalchemy import func, select, text

from db.models import RescoringState, Scoring
from db.partitions import ensure_current_partitions
from db.rescorings import get_rescoring

ROOT = Path(__file__).resolve().parents[3]
MODEL_LIBRARIES = ("torch", "onnxruntime", "llama", "tokenizers")
AUDITS = 1000

# Claims of three spans with true triples, which no encoder has to compute.
HISTORY = """
    INSERT INTO halldetect.documents (sha256, text, characters)
        VALUES (sha256('x'), 'A. B. C.', 8);
    INSERT INTO halldetect.audits (document_id, policy_id, response, status, outcome, fedscore,
            label, supported, contradicted, unsupported, finished_at)
        SELECT 1, 1, '', 'completed', 'scored', 0.5, 'hallucinated', 0, 0, 2, now()
        FROM generate_series(1, :audits);
    INSERT INTO halldetect.probabilities
        SELECT month, id, position, ARRAY[0.5, 0.25, 0.25], ARRAY[0.25, 0.5, 0.25],
            ARRAY[0.25, 0.25, 0.5]
        FROM halldetect.audits, generate_series(0, 1) AS position
"""
# Small chunks; with a file to make it stands still over the third before that is committed.
RUN = """
import sys, threading
from pathlib import Path
from db import stored_matrices
from db.engine import make_engine
from worker import rescoring
from worker.rescoring import Rescorer
stored_matrices.MOST_AUDITS = 5
store, calls = rescoring.store_scorings, []

def store_and_stop(*arguments):
    stored = store(*arguments)
    calls.append(stored)
    if len(calls) == 3:
        Path(sys.argv[3]).touch()
        threading.Event().wait()
    return stored

if len(sys.argv) == 4:
    rescoring.store_scorings = store_and_stop
Rescorer(make_engine(sys.argv[1]), None, run_seconds=600, stopping=threading.Event()).run(
    int(sys.argv[2]))
"""


@pytest.fixture
def rescoring(sessions):
    """Store a history of its own and return the id of a rescoring of all of it."""
    with sessions.begin() as session:
        ensure_current_partitions(session, 1)
        for statement in HISTORY.split(";"):
            session.execute(text(statement), {"audits": AUDITS} if ":audits" in statement else {})
        policy = make_policy(session, "strict", "contrastive", "fedscore")
    return request_rescoring(sessions, policy)


@pytest.fixture
def status(sessions, rescoring):
    def read():
        with sessions.begin() as session:
            return get_rescoring(session, rescoring)

    return read


@pytest.fixture
def scorings(sessions):
    def count():
        with sessions.begin() as session:
            return session.scalar(select(func.count()).select_from(Scoring))

    return count


@pytest.fixture
def nobody_holds_it(sessions):
    held = text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )

    def read():
        with sessions.begin() as session:
            return session.scalar(held) == 0

    return read


@pytest.fixture
def start():
    started = []

    def start(*command, **environment):
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_until(holds):
    while not holds():
        threading.Event().wait(0.02)


def test_a_job_that_is_killed_goes_on_where_it_was(
    start, database, rescoring, status, scorings, nobody_holds_it, tmp_path
):
    stands_still = tmp_path / "stands-still"
    first = start("-c", RUN, database, str(rescoring), str(stands_still))
    wait_until(stands_still.exists)
    first.send_signal(signal.SIGKILL)
    first.wait()
    wait_until(nobody_holds_it)  # its server process has yet to notice
    killed = status()
    assert killed.state is RescoringState.RUNNING
    assert killed.scored == 10
    assert scorings() == killed.scored
    second = start("-c", RUN, database, str(rescoring))
    assert second.wait() == 0
    done = status()
    assert done.state is RescoringState.COMPLETED
    assert (done.scored, done.present, done.skipped) == (AUDITS, 0, 0)
    assert scorings() == AUDITS


def test_two_processes_on_one_selection_store_every_score_once(
    start, database, rescoring, sessions, status, scorings
):
    other = request_rescoring(sessions, status().policy)
    processes = [start("-c", RUN, database, str(number)) for number in (rescoring, other)]
    assert [process.wait() for process in processes] == [0, 0]
    with sessions.begin() as session:
        both = [get_rescoring(session, number) for number in (rescoring, other)]
    assert [one.state for one in both] == [RescoringState.COMPLETED] * 2
    assert sum(one.scored for one in both) == sum(one.present for one in both) == AUDITS
    assert scorings() == AUDITS


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_a_maintenance_worker_does_it_without_a_library_of_a_model(
    start, database, redis_url, rescoring, status, wake_ups
):
    worker = start(
        *("-m", "celery", "-A", "worker.app", "worker", "-Q", "maintenance"),
        *("-n", "maintenance@%h", "--without-mingle", "--without-gossip"),
        DATABASE_URL=database,
        REDIS_URL=redis_url,
    )
    wake_ups.send_rescoring(rescoring, reason="submitted")
    wait_until(lambda: status().is_over)
    assert status().state is RescoringState.COMPLETED
    mapped = Path(f"/proc/{worker.pid}/maps").read_text(encoding="utf-8")
    assert "numpy" in mapped
    assert [name for name in MODEL_LIBRARIES if f"/{name}" in mapped] == []
    worker.terminate()
    assert worker.wait() == 0
