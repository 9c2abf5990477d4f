from __future__ import annotations

import pytest
from sqlalchemy import text

from db.batches import batch_state, list_batches
from db.leases import begin
from db.line import Stage

RESPONSE = "The mill opened in 1900. It closed in 1950."


@pytest.fixture
def start(sessions):
    """Notes that work on claimed audits began some minutes ago."""

    def run(stage, minutes, *claimed):
        with sessions.begin() as session:
            assert begin(session, stage, [one.lease for one in claimed])
            session.execute(
                text(
                    f"UPDATE halldetect.audits SET {stage.value}_started_at ="
                    f" clock_timestamp() - interval '{minutes} minutes' WHERE id = ANY(:ids)"
                ),
                {"ids": [one.lease.audit_id for one in claimed]},
            )

    return run


def test_the_audit_that_is_in_work_longest_is_known_of_each_batch(service, sessions, start):
    first = service.submit(*[RESPONSE] * 3)
    second = service.submit(RESPONSE)
    one, two, _, other = service.claim_extraction()
    start(Stage.EXTRACTION, 9, one)
    start(Stage.EXTRACTION, 5, two, other)
    service.extract(one)  # waits for its verification now, and is not in work
    with sessions() as session:
        running = batch_state(session, first).longest_running
        assert (running.id, running.stage, running.claims) == (
            two.lease.audit_id,
            "extraction",
            None,
        )
        assert 300 <= running.seconds < 9 * 60
        listed, _ = list_batches(session, before_id=None, limit=9)
        assert {state.id: state.longest_running.id for state in listed} == {
            first: two.lease.audit_id,
            second: other.lease.audit_id,
        }
    service.extract(two)
    _, checked = service.claim_verification()
    start(Stage.VERIFICATION, 7, checked)
    with sessions() as session:
        running = batch_state(session, first).longest_running
        assert (running.id, running.stage, running.claims) == (
            checked.lease.audit_id,
            "verification",
            2,
        )
        assert running.seconds >= 7 * 60
        document = batch_state(session, first).document()["longest_running"]
        assert document["id"] == str(checked.lease.audit_id)


def test_what_is_claimed_and_not_begun_is_not_in_work(service, sessions):
    batch = service.submit(RESPONSE)
    service.claim_extraction()
    with sessions() as session:
        state = batch_state(session, batch)
    assert (state.running, state.longest_running) == (1, None)
