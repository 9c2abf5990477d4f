"""Who gets which audit, and what happens to those whose worker was lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from db.audits import get_audit
from db.batches import batch_state, cancel_batch
from db.leases import LeaseLost, begin, recover_expired, release, renew
from db.line import Stage, head_of_line, waiting
from db.models import Audit
from db.progress import charge_fault, fail_audit
from db.queue_depth import queue_depths, recent_throughput


def expire(sessions, audit_id=None, begun=True):
    """Let leases run out, as if their workers had been lost, in the middle of the work or not."""
    condition = "lease_owner IS NOT NULL" if audit_id is None else f"id = {audit_id}"
    with sessions.begin() as session:
        session.execute(
            text(
                "UPDATE halldetect.audits SET lease_expires_at = now() - interval '1 second',"
                f" lease_begun = {begun} WHERE {condition}"
            )
        )


def recover(sessions, max_attempts=3):
    with sessions.begin() as session:
        return recover_expired(session, max_attempts)


def audit(sessions, audit_id):
    with sessions.begin() as session:
        return session.get(Audit, audit_id)


def ids(claimed):
    return [taken.lease.audit_id for taken in claimed]


def test_the_line_is_priority_then_single_audits_then_first_come(service):
    service.submit("b1", "b2")
    service.submit("urgent", priority=5)
    service.submit("single", batch=False)
    service.submit("later", priority=-1)
    claimed = service.claim_extraction()
    assert [taken.response for taken in claimed] == ["urgent", "single", "b1", "b2", "later"]
    assert service.claim_extraction("other") == []


def test_workers_at_once_never_share_an_audit(service):
    service.submit(*(f"response {n}" for n in range(60)))
    with ThreadPoolExecutor(5) as pool:
        loads = pool.map(lambda n: service.claim_extraction(f"w{n}", max_audits=6), range(10))
        taken = [audit_id for load in loads for audit_id in ids(load)]
    assert sorted(taken) == list(range(1, 61))


def test_a_load_is_cut_to_the_budget_but_never_to_nothing(service):
    service.submit("The mill opened in 1900. It closed in 1950.", "It opened.", "It closed.")
    for claimed in service.claim_extraction():
        service.extract(claimed)
    assert ids(service.claim_verification(token_budget=1)) == [1]
    assert ids(service.claim_verification(token_budget=10**6)) == [2, 3]


def test_an_audit_whose_worker_was_lost_goes_alone(service, sessions):
    service.submit("a", "b", "c", "d")
    assert ids(service.claim_extraction(max_audits=2)) == [1, 2]
    expire(sessions, audit_id=2)
    recovered = recover(sessions)
    assert (recovered.requeued, recovered.failed) == (1, 0)
    assert ids(service.claim_extraction()) == [2]
    assert ids(service.claim_extraction()) == [3, 4]
    stored = audit(sessions, 2)
    assert (stored.attempts, stored.faults, stored.worker_lost) == (2, 1, True)


def test_what_a_lost_worker_had_not_begun_is_blameless(service, sessions):
    service.submit("a", "b")
    first, _ = service.claim_extraction()
    with sessions.begin() as session:
        assert begin(session, Stage.EXTRACTION, [first.lease]) == {1}
    expire(sessions, audit_id=1)
    expire(sessions, audit_id=2, begun=False)
    assert recover(sessions).requeued == 2
    first, second = audit(sessions, 1), audit(sessions, 2)
    assert (first.attempts, first.faults, first.worker_lost) == (1, 1, True)
    assert (second.attempts, second.faults, second.worker_lost) == (0, 0, False)
    assert (first.extraction_started_at is None, second.extraction_started_at is None) == (
        False,
        True,
    )


def test_work_on_a_lost_lease_does_not_begin(service, sessions):
    service.submit("a")
    (late,) = service.claim_extraction()
    expire(sessions)
    recover(sessions)
    with sessions.begin() as session:
        assert begin(session, Stage.EXTRACTION, [late.lease]) == set()


def test_an_audit_to_be_run_alone_parts_the_line(service, sessions):
    service.submit("a", "b", "c", "d")
    claimed = service.claim_extraction()
    expire(sessions, audit_id=3)
    recover(sessions)
    with sessions.begin() as session:
        release(session, [taken.lease for taken in claimed], begun=False)
    assert [ids(service.claim_extraction()) for _ in range(4)] == [[1, 2], [3], [4], []]


def test_an_audit_that_loses_worker_after_worker_fails_with_the_reason(service, sessions):
    service.submit("poison")
    for attempt in range(1, 4):
        assert ids(service.claim_extraction()) == [1]
        expire(sessions)
        recovered = recover(sessions)
        assert (recovered.requeued, recovered.failed) == ((1, 0) if attempt < 3 else (0, 1))
    with sessions.begin() as session:
        failed = get_audit(session, 1)
    assert failed.status == "failed"
    assert "worker was lost 3 times" in failed.error
    assert service.claim_extraction() == []


def test_what_was_not_begun_is_handed_back_as_if_never_taken(service, sessions):
    service.submit("a", "b")
    first, second = service.claim_extraction()
    with sessions.begin() as session:
        release(session, [first.lease], begun=False)
        release(session, [second.lease], begun=True)
    assert [audit(sessions, n).attempts for n in (1, 2)] == [0, 1]
    assert [audit(sessions, n).faults for n in (1, 2)] == [0, 0]
    assert ids(service.claim_extraction()) == [1, 2]


def test_a_renewed_lease_does_not_expire(service, sessions):
    service.submit("a", "b")
    first, second = service.claim_extraction()
    expire(sessions)
    with sessions.begin() as session:
        assert renew(session, [first.lease], 60) == {1}
    assert recover(sessions).requeued == 1
    with sessions.begin() as session:
        assert renew(session, [first.lease, second.lease], 60) == {1}


def test_the_late_write_of_a_lost_lease_loses(service, sessions):
    service.submit("The mill opened in 1900.")
    (late,) = service.claim_extraction("slow")
    expire(sessions)
    recover(sessions)
    (taken,) = service.claim_extraction("slow")  # even under the same name
    with pytest.raises(LeaseLost, match="audit 1 is no longer held by slow under token 1"):
        service.extract(late)
    service.extract(taken)
    (late,) = service.claim_verification("slow")
    expire(sessions)
    recover(sessions)
    (taken,) = service.claim_verification("quick")
    with pytest.raises(LeaseLost):
        service.verify(late)
    matrix = service.verify(taken)
    with sessions.begin() as session:
        result = get_audit(session, 1, with_matrix=True)
    assert result.status == "completed"
    assert result.matrix.entailment == [
        [float(str(cell)) for cell in row] for row in matrix.entailment
    ]


@pytest.mark.parametrize("write", [fail_audit, lambda *a: charge_fault(*a, max_attempts=3)])
def test_a_lost_lease_cannot_fail_an_audit_either(service, sessions, write):
    service.submit("a")
    (late,) = service.claim_extraction()
    expire(sessions)
    recover(sessions)
    with pytest.raises(LeaseLost), sessions.begin() as session:
        write(session, late.lease, "too late")
    assert audit(sessions, 1).status == "queued"


def test_an_audits_own_error_counts_until_it_fails(service, sessions):
    service.submit("a")
    outcomes = []
    for _ in range(3):
        (claimed,) = service.claim_extraction()
        with sessions.begin() as session:
            outcomes.append(charge_fault(session, claimed.lease, "boom \0", max_attempts=3))
    assert outcomes == [False, False, True]
    stored = audit(sessions, 1)
    assert (stored.status, stored.faults) == ("failed", 3)
    assert stored.error == "failed 3 times, lastly: boom \ufffd"


def test_cancelling_keeps_what_is_finished_and_takes_what_runs(service, sessions):
    service.submit(*(f"The mill opened in {1900 + n}." for n in range(25)))
    for claimed in service.claim_extraction(max_audits=6):
        service.extract(claimed)
    *done, running = service.claim_verification()
    for claimed in done:
        service.verify(claimed)
    with sessions.begin() as session:
        state = cancel_batch(session, 1)
    assert (state.completed, state.cancelled, state.waiting) == (5, 20, 0)
    assert state.status == "cancelled"
    with pytest.raises(LeaseLost):
        service.verify(running)
    with sessions.begin() as session:
        again = cancel_batch(session, 1)
        assert again == batch_state(session, 1) == state
        assert cancel_batch(session, 99) is None


def test_depths_tell_what_waits_and_what_runs(service, sessions):
    service.submit("a", "b", "c")
    service.extract(service.claim_extraction(max_audits=1)[0])
    service.claim_extraction(max_audits=1)
    with sessions.begin() as session:
        extraction, verification = queue_depths(session)
        assert (extraction.waiting, extraction.running) == (1, 1)
        assert (verification.waiting, verification.running) == (1, 0)
        assert verification.oldest_seconds >= 0
        assert waiting(session, Stage.EXTRACTION) == 1
        assert head_of_line(session, Stage.EXTRACTION) == (3, 1)
        assert head_of_line(session, Stage.VERIFICATION) is not None
        assert recent_throughput(session) == 0
    service.verify(service.claim_verification()[0])
    with sessions.begin() as session:
        assert head_of_line(session, Stage.VERIFICATION) is None
        assert recent_throughput(session, seconds=1000) == 0.001
        cancel_batch(session, 1)
        assert recent_throughput(session, seconds=1000) == 0.001
