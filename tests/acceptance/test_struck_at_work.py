"""One fault each, in the middle of the work that it hits: who is charged, and what comes of it."""

import threading
import time
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
BEGUN = {
    "extraction": "SELECT count(*) FROM halldetect.audits WHERE lease_begun AND status = 'queued'",
    "nli": "SELECT count(*) FROM halldetect.audits WHERE lease_begun AND status = 'extracted'",
}


def name(parameter):
    """Return how a queue or a fault is shown in the name of a test."""
    return getattr(parameter, "name", parameter)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    quickly = {"LEASE_SECONDS": "10", "SWEEP_SECONDS": "2", "THREADS": "1"}
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
    """Return a function: submits, waits until the queue's worker is in the middle, and strikes."""
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

    def strike(queue, fault):
        submit(queue)
        wait_until_begun(stack, queue)
        assert striker.strike(fault)

    return strike


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
    def strike():
        strike_at_work("nli", replace(STOP_VALKEY, strike=lambda _, pid: valkey.suspend()))
        assert striker.strike(END_NLI)

    valkey = psutil.Process(stack.pid("valkey"))
    try:
        ended_in_time(stack, strike, "nli")
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
    uploading.start()
    assert striker.strike(KILL_API_DURING_UPLOAD)
    uploading.join()
    assert load.repeated.total() > repeated
    assert ended_batch(stack, load, striker) == [0] * 20
