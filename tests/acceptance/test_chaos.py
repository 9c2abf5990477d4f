"""Every kind of fault once, at a whole service at work: a short form of `benchmarks/chaos.py`."""

import threading
import time

import psycopg
import pytest
from chaos_faults import FAULTS
from chaos_load import Load, small_records
from chaos_strikes import Striker, recoveries
from chaos_tally import tally, wait_for_the_end
from own_stack import OwnStack

PORTION = 6  # audits a fault: a batch, and one by itself
PATIENCE = 300


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    quickly = {"LEASE_SECONDS": "10", "SWEEP_SECONDS": "2", "THREADS": "1"}
    settings = {f"HALLDETECT_{name}": value for name, value in quickly.items()}
    with OwnStack(tmp_path_factory.mktemp("chaos") / "home", settings=settings) as stack:
        stack.wait_until_ready(seconds=PATIENCE)
        yield stack


@pytest.fixture(scope="module")
def load(stack):
    return Load(lambda: stack.running.api_url, time.monotonic() + 10 * PATIENCE)


def strike_while_submitting(stack, load, striker, fault, records):
    """Submit the records, and strike as soon as that begins and the part is there."""

    def submit():
        load.submit_batch(records[1:])
        load.submit_audit(records[0])

    submitting = threading.Thread(target=submit)
    stack.wait_until(lambda _: stack.pid(fault.part) is not None, seconds=PATIENCE)
    with load.last_piece:
        submitting.start()
        while not striker.strike(fault):
            time.sleep(0.1)
    submitting.join()


def test_no_fault_loses_doubles_or_blocks_an_audit(stack, load):
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


def test_the_reckoning_sees_what_is_wrong(stack, load):
    load.submit_batch(small_records(3, seed=2, first=1000))
    assert wait_for_the_end(stack, seconds=PATIENCE)
    before = tally(stack, load.accepted)
    assert before.is_sound
    with psycopg.connect(stack.running.database_url) as connection:
        for change in (
            "SET custom_id = 'stranger' WHERE custom_id = 'chaos-1000'",
            "SET supported = supported + 1 WHERE custom_id = 'chaos-1001'",
            "SET status = 'extracted', outcome = NULL, fedscore = NULL, label = NULL,"
            " finished_at = NULL, supported = NULL, contradicted = NULL, unsupported = NULL,"
            " lease_owner = 'nobody', lease_expires_at = now() + interval '1 hour'"
            " WHERE custom_id = 'chaos-1002'",
        ):
            connection.execute(f"UPDATE halldetect.audits {change}")
    found = tally(stack, load.accepted)
    assert not found.is_sound
    assert found.lost == ["chaos-1000"]
    assert "not submitted: stranger" in found.doubled
    assert found.stuck == ["chaos-1002"]
    assert found.completed == before.completed - 1
    checks = {finding.split()[0] for finding in found.findings}
    assert checks == {"verdicts", "orphaned_probabilities", "lost_leases"}
