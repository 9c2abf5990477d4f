"""Every kind of fault once, at a whole service at work: a short form of `benchmarks/chaos.py`."""

import threading
import time

import pytest
from chaos_faults import FAULTS
from chaos_load import Load, small_records
from chaos_stack import ChaosStack
from chaos_strikes import Striker, recoveries
from chaos_tally import tally, wait_for_the_end

PORTION = 6  # audits a fault: a batch, and one by itself
PATIENCE = 300


@pytest.fixture
def stack(tmp_path):
    quickly = {"LEASE_SECONDS": "10", "SWEEP_SECONDS": "2", "THREADS": "1"}
    settings = {f"HALLDETECT_{name}": value for name, value in quickly.items()}
    with ChaosStack(tmp_path / "home", settings=settings) as stack:
        stack.wait_until_ready(seconds=PATIENCE)
        yield stack


def strike_while_submitting(stack, load, striker, fault, records):
    """Submit the records, and strike as soon as that begins and the part is there."""

    def submit():
        load.submit_batch(records[1:])
        load.submit_audit(records[0])

    submitting = threading.Thread(target=submit)
    stack.wait_until(lambda _: stack.pid(fault.part) is not None, seconds=PATIENCE)
    submitting.start()
    while not striker.strike(fault):
        assert submitting.is_alive() or not fault.during_upload
        time.sleep(0.1)
    submitting.join()


def test_no_fault_loses_doubles_or_blocks_an_audit(stack):
    load = Load(lambda: stack.running.api_url, time.monotonic() + PATIENCE)
    striker = Striker(stack, load)
    records = small_records(PORTION * len(FAULTS))
    for number, fault in enumerate(FAULTS):
        portion = records[number * PORTION : (number + 1) * PORTION]
        strike_while_submitting(stack, load, striker, fault, portion)
    striker.wait_for_recovery()
    stack.wait_until_ready(seconds=PATIENCE)
    assert wait_for_the_end(stack, seconds=PATIENCE)
    found = tally(stack, load.accepted)
    assert found.is_sound, found
    # Each worker was killed once, and an audit fails when it loses three.
    assert (found.submitted, found.completed) == (len(records), len(records)), found
    assert load.repeated  # the API was killed in the middle of an upload
    seen = recoveries(stack, FAULTS, striker.strikes)
    assert {one.fault: one.struck for one in seen} == {fault.name: 1 for fault in FAULTS}
    assert all(one.ready_seconds for one in seen), seen
