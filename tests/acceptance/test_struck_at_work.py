"""One fault each, in the middle of the work that it hits: who is charged, and what comes of it."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import psutil
import psycopg
import pytest
from chaos_faults import (
    CUT_CONNECTIONS,
    EMPTY_VALKEY,
    END_EXTRACTION,
    END_NLI,
    FLUSH_VALKEY,
    KILL_API_DURING_UPLOAD,
    KILL_BEAT,
    KILL_EXTRACTION,
    KILL_NLI,
    KILL_POSTGRES,
    RESTART_POSTGRES,
    STOP_VALKEY,
)
from chaos_load import Load
from chaos_strikes import Striker
from chaos_tally import tally, wait_for_the_end
from own_stack import OwnStack

from cli.stack.services import _WORKER_GRACE_SECONDS

PATIENCE = 300
SOURCE = " ".join(
    f"Mill {n} stands in ward {n} and made {n + 7} sacks of flour." for n in range(12)
)
CLAIMS = " ".join(f"Mill {n} made {n + 7} sacks of flour." for n in range(3))
# Taking it apart takes a while; its only claim that is there is checked against one sentence.
LONG_RESPONSE = " ".join(f"Room {n} has {n % 7 + 2} doors." for n in range(250))
# What a result is written to: while nobody may, what was begun is not over.
WRITTEN = {"extraction": "halldetect.extractions", "nli": "halldetect.verifications"}
BEGUN = {
    "extraction": "SELECT count(*) FROM halldetect.audits WHERE lease_begun AND status = 'queued'",
    "nli": "SELECT count(*) FROM halldetect.audits WHERE lease_begun AND status = 'extracted'",
}


def name(parameter):
    """Return how a queue or a fault is shown in the name of a test."""
    return getattr(parameter, "name", parameter)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    # Leases that outlast a worker or server that the system keeps from running for a while.
    quickly = {"LEASE_SECONDS": "60", "SWEEP_SECONDS": "2", "THREADS": "1"}
    settings = {f"HALLDETECT_{name}": value for name, value in quickly.items()}
    with OwnStack(tmp_path_factory.mktemp("struck") / "home", settings=settings) as stack:
        stack.wait_until_ready(seconds=PATIENCE)
        yield stack


@pytest.fixture(scope="module")
def load(stack):
    return Load(lambda: stack.running.api_url, time.monotonic() + 10 * PATIENCE)


@pytest.fixture
def striker(stack, load):
    return Striker(stack, load)


@pytest.fixture
def strike_at_work(stack, load, striker):
    """Return a function: submits, and strikes while the queue's worker is in the middle."""
    stack.wait_until_ready(seconds=PATIENCE)
    numbers = iter(range(10**6))

    def submit(queue):
        first = len(load.accepted)
        if queue == "extraction":
            texts = {"source": "The house has rooms.", "response": LONG_RESPONSE}
            records = [texts] + [{"source": SOURCE, "response": CLAIMS}] * 2
        else:
            records = [{"source": SOURCE, "response": CLAIMS}] * 6
        load.submit_batch(
            [{"custom_id": f"{first}-{next(numbers)}", **record} for record in records]
        )

    def strike(queue, *faults):
        with held_at_work(stack, queue):
            submit(queue)
            wait_until_begun(stack, queue)
            for fault in faults:
                assert striker.strike(fault)

    return strike


@contextmanager
def held_at_work(stack, queue):
    """Let no result of a queue be written until the block ends."""
    connection = psycopg.connect(stack.running.database_url)
    try:
        connection.execute(f"LOCK TABLE {WRITTEN[queue]} IN SHARE MODE")
        yield
    finally:
        connection.close()  # which the fault may have done


def wait_until_begun(stack, queue):
    with psycopg.connect(stack.running.database_url, autocommit=True) as connection:
        while connection.execute(BEGUN[queue]).fetchone() == (0,):
            time.sleep(0.01)


def ended_batch(stack, load, striker):
    """Wait for the end of all, see that all is sound, and return the faults of the last batch."""
    striker.wait_for_recovery()
    stack.wait_until_ready(seconds=PATIENCE)
    assert wait_for_the_end(stack, seconds=PATIENCE)
    found = tally(stack, load.accepted)
    assert found.is_sound, found
    assert found.completed == found.submitted, found
    with psycopg.connect(stack.running.database_url) as connection:
        rows = connection.execute(
            "SELECT faults FROM halldetect.audits WHERE batch_id = %s ORDER BY line",
            (load.accepted[-1].id,),
        )
        return [faults for (faults,) in rows]


@pytest.mark.parametrize(
    ("queue", "fault"),
    [("extraction", KILL_EXTRACTION), ("nli", KILL_NLI)],
    ids=name,
)
def test_what_a_killed_worker_had_begun_is_charged_once_and_done(
    stack, load, striker, strike_at_work, queue, fault
):
    strike_at_work(queue, fault)
    faults = ended_batch(stack, load, striker)
    if queue == "extraction":  # one at a time
        assert faults == [1, 0, 0]
    else:  # as many as were extracted by then share a load
        assert max(faults) == 1


@pytest.mark.parametrize(
    ("queue", "fault"),
    [
        ("nli", STOP_VALKEY),
        ("nli", FLUSH_VALKEY),
        ("extraction", EMPTY_VALKEY),
        ("nli", CUT_CONNECTIONS),
        ("nli", RESTART_POSTGRES),
        ("extraction", KILL_POSTGRES),
    ],
    ids=name,
)
def test_what_a_server_is_struck_in_is_done_and_charged_to_nobody(
    stack, load, striker, strike_at_work, queue, fault
):
    strike_at_work(queue, fault)
    assert set(ended_batch(stack, load, striker)) == {0}


def test_beat_comes_back_and_wakes_for_what_redis_never_heard_of(stack, load, striker):
    stack.wait_until_ready(seconds=PATIENCE)
    assert striker.strike(KILL_BEAT)
    psutil.Process(stack.pid("valkey")).suspend()
    load.submit_batch([{"custom_id": "unheard", "source": SOURCE, "response": CLAIMS}])
    assert striker.strike(EMPTY_VALKEY)
    assert ended_batch(stack, load, striker) == [0]


def ended_in_time(stack, strike, queue):
    worker = psutil.Process(stack.pid(queue))
    strike()
    worker.wait(_WORKER_GRACE_SECONDS)
    stack.wait_until(lambda _: f"{queue} ended with code 0" in stack.printed, seconds=PATIENCE)


@pytest.mark.parametrize(
    ("queue", "fault"), [("extraction", END_EXTRACTION), ("nli", END_NLI)], ids=name
)
def test_a_worker_that_is_asked_to_end_at_work_does_in_time_and_charges_nobody(
    stack, load, striker, strike_at_work, queue, fault
):
    ended_in_time(stack, lambda: strike_at_work(queue, fault), queue)
    assert set(ended_batch(stack, load, striker)) == {0}


def test_a_worker_ends_in_time_while_redis_stands_still(stack, load, striker, strike_at_work):
    valkey = psutil.Process(stack.pid("valkey"))
    stands_still = replace(STOP_VALKEY, strike=lambda _, pid: valkey.suspend())
    try:
        ended_in_time(stack, lambda: strike_at_work("nli", stands_still, END_NLI), "nli")
    finally:
        valkey.resume()
    assert set(ended_batch(stack, load, striker)) == {0}


def test_an_upload_whose_api_is_killed_is_sent_again_and_stored_once(stack, load, striker):
    stack.wait_until_ready(seconds=PATIENCE)
    repeated = load.repeated.total()
    records = [
        {"custom_id": f"upload-{n}", "source": SOURCE, "response": "Mill 3 made 10 sacks of flour."}
        for n in range(20)
    ]
    uploading = threading.Thread(target=load.submit_batch, args=(records,))
    with load.last_piece:
        uploading.start()
        while not striker.strike(KILL_API_DURING_UPLOAD):
            time.sleep(0.1)
    uploading.join()
    assert load.repeated.total() > repeated
    assert ended_batch(stack, load, striker) == [0] * 20
