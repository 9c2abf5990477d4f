import pytest
from sqlalchemy import text

from db.audits import get_audit
from db.batches import batch_state
from db.leases import begin, recover_expired
from db.line import Stage
from db.progress import fail_audit
from db.retries import Retried, retry_audit, retry_batch
from halldetect.trail import Status

RESPONSE = "The mill opened in 1900. Nobody was hurt."


@pytest.fixture
def fail(sessions):
    def end(claimed):
        with sessions.begin() as session:
            fail_audit(session, claimed.lease, "the source is odd")

    return end


@pytest.fixture
def audit(sessions):
    def row(audit_id):
        with sessions() as session:
            statement = text("SELECT * FROM halldetect.audits WHERE id = :id")
            return session.execute(statement, {"id": audit_id}).mappings().one()

    return row


@pytest.fixture
def retry(sessions):
    def run(function, number):
        with sessions.begin() as session:
            return function(session, number)

    return run


def test_a_failed_audit_waits_again_and_is_completed(service, fail, audit, retry):
    [audit_id] = service.submit(RESPONSE, batch=False)
    fail(service.claim_extraction()[0])
    before = audit(audit_id)
    assert retry(retry_audit, audit_id) == Retried(queued=1, extracted=0)
    after = audit(audit_id)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"status", "faults", "error", "finished_at"}
    assert (after["status"], after["faults"]) == ("queued", 0)
    service.run()
    assert audit(audit_id)["status"] == "completed"


def test_claims_that_are_there_are_kept(service, fail, sessions, retry):
    [audit_id] = service.submit(RESPONSE, batch=False)
    service.extract(service.claim_extraction()[0])
    fail(service.claim_verification()[0])
    retried = retry(retry_audit, audit_id)
    assert retried == Retried(queued=0, extracted=1)
    assert retried.stages == [Stage.VERIFICATION]
    assert service.claim_extraction() == []
    [claimed] = service.claim_verification()
    assert len(claimed.claims) == 2
    service.verify(claimed)
    with sessions() as session:
        assert get_audit(session, audit_id).status is Status.COMPLETED


def test_what_lost_its_workers_is_run_alone_once(service, sessions, audit, retry):
    first, second = service.submit(RESPONSE, RESPONSE, batch=False)
    [lost] = service.claim_extraction(lease_seconds=0, max_audits=1)
    with sessions.begin() as session:
        begin(session, Stage.EXTRACTION, [lost.lease])
        assert recover_expired(session, max_attempts=1).failed == 1
    retry(retry_audit, first)
    assert audit(first)["worker_lost"]
    [alone] = service.claim_extraction()
    assert (alone.lease.audit_id, alone.worker_lost) == (first, True)
    service.extract(alone)
    assert not audit(first)["worker_lost"]
    assert audit(second)["attempts"] == 0


def test_the_late_write_of_a_worker_from_before_the_failure_loses(service, fail, audit, retry):
    [audit_id] = service.submit(RESPONSE, batch=False)
    [claimed] = service.claim_extraction()
    fail(claimed)
    retry(retry_audit, audit_id)
    service.claim_extraction(owner="another")
    assert audit(audit_id)["fencing_token"] == claimed.lease.fencing_token + 1
    with pytest.raises(Exception, match="no longer held"):
        service.extract(claimed)


def test_only_what_failed_of_the_batch_is_retried(service, fail, sessions, audit, retry):
    batch = service.submit(*[RESPONSE] * 4)
    other = service.submit(RESPONSE)
    first, second, third, fourth, strange = service.claim_extraction()
    for claimed in (first, second, third):
        service.extract(claimed)
    fail(fourth)
    fail(strange)
    one, two, three = service.claim_verification()
    service.verify(one)
    fail(two)
    untouched = [audit(claimed.lease.audit_id) for claimed in (one, three, strange)]
    assert retry(retry_batch, batch) == Retried(queued=1, extracted=1)
    assert [audit(claimed.lease.audit_id) for claimed in (one, three, strange)] == untouched
    with sessions() as session:
        state = batch_state(session, batch)
        assert (state.completed, state.failed, state.waiting) == (1, 0, 3)
        assert batch_state(session, other).failed == 1


@pytest.mark.parametrize("function", [retry_audit, retry_batch])
def test_without_a_failure_nothing_changes(service, audit, retry, function):
    service.submit(RESPONSE)
    service.run()
    before = audit(1)
    retried = retry(function, 1)
    assert (retried.total, retried.stages) == (0, [])
    assert audit(1) == before
    assert retry(function, 99).total == 0
