"""Every invariant is broken on purpose, and the one check that is about it says so."""

import pytest
from sqlalchemy.exc import InternalError

from db.doctor import Invariant, checks, failed_audits
from db.models import WorkerState
from db.partitions import ensure_current_partitions
from db.webhooks import create_webhook
from db.workers import WorkerCounters, heartbeat, register
from queues.names import Queue, queue_of

RESPONSE = "The mill opened in 1900. A dragon lives in it."
COMPLETED, EMPTY, EXTRACTED, QUEUED = 1, 2, 3, 4


@pytest.fixture
def find(sessions):
    """Return all findings of a check-up, by their check."""

    def run():
        every = checks(sessions, queue_of, Queue.MAINTENANCE)
        found = [finding for _, check in every for finding in check()]
        by_check = {finding.check: finding for finding in found}
        assert len(by_check) == len(found)
        assert all(finding.problem and finding.mend for finding in found)
        return by_check

    return run


@pytest.fixture
def report_worker(sessions):
    def report(name, queues, state=WorkerState.READY, error=None, unswept_seconds=None):
        with sessions.begin() as session:
            register(session, name, queues=queues, pid=1, host="here")
            heartbeat(
                session,
                name,
                state=state,
                error=error,
                models=[],
                counters=WorkerCounters(),
                unswept_seconds=unswept_seconds,
            )

    return report


@pytest.fixture
def batch(sessions, service, report_worker):
    """A batch with an audit in every state on the way, workers at hand, and nothing wrong."""
    with sessions.begin() as session:
        ensure_current_partitions(session)
    batch_id = service.submit(RESPONSE, "Thanks!", RESPONSE, RESPONSE)
    for claimed in service.claim_extraction(max_audits=3):
        service.extract(claimed)
    for claimed in service.claim_verification(max_audits=2):
        service.verify(claimed)
    report_worker("both", ["extraction", "nli"])
    report_worker("sweeper", ["maintenance"], unswept_seconds=10.0)
    return batch_id


def test_a_whole_trail_has_no_findings(batch, find):
    assert find() == {}


def test_an_empty_database_with_its_partitions_has_no_findings(sessions, find):
    with sessions.begin() as session:
        ensure_current_partitions(session)
    assert find() == {}


@pytest.mark.parametrize(
    ("damage", "check", "example"),
    [
        ("UPDATE halldetect.batches SET total = total + 1", "batch_totals", 1),
        ("DELETE FROM halldetect.audits WHERE id = 4", "batch_totals", 1),
        ("DELETE FROM halldetect.verifications WHERE audit_id = 2", "completed_parts", EMPTY),
        ("DELETE FROM halldetect.extractions WHERE audit_id = 2", "completed_parts", EMPTY),
        ("DELETE FROM halldetect.extractions WHERE audit_id = 3", "extracted_parts", EXTRACTED),
        (
            "UPDATE halldetect.audits SET status = 'queued' WHERE id = 3",
            "queued_parts",
            EXTRACTED,
        ),
        ("DELETE FROM halldetect.claims WHERE audit_id = 3", "claims", EXTRACTED),
        (
            "DELETE FROM halldetect.claims WHERE audit_id = 3 AND position = 1",
            "claims",
            EXTRACTED,
        ),
        (
            "UPDATE halldetect.claims SET position = 7 WHERE audit_id = 1 AND position = 1",
            "claims",
            COMPLETED,
        ),
        (
            "UPDATE halldetect.claims SET verdict = 'unsupported' WHERE audit_id = 1",
            "verdicts",
            COMPLETED,
        ),
        (
            "UPDATE halldetect.audits SET supported = supported + 1 WHERE id = 2",
            "verdicts",
            EMPTY,
        ),
        ("DELETE FROM halldetect.probabilities", "probabilities", COMPLETED),
        ("DELETE FROM halldetect.probabilities WHERE position = 0", "probabilities", COMPLETED),
        (
            "UPDATE halldetect.probabilities SET position = 5 WHERE position = 1",
            "probabilities",
            COMPLETED,
        ),
        (
            "UPDATE halldetect.probabilities SET entailment = entailment[2:], neutral ="
            " neutral[2:], contradiction = contradiction[2:] WHERE position = 1",
            "probabilities",
            COMPLETED,
        ),
        (
            "INSERT INTO halldetect.probabilities SELECT month, 77, position, entailment, neutral,"
            " contradiction FROM halldetect.probabilities",
            "orphaned_probabilities",
            77,
        ),
        (
            "INSERT INTO halldetect.probabilities SELECT month, 3, position, entailment, neutral,"
            " contradiction FROM halldetect.probabilities",
            "orphaned_probabilities",
            EXTRACTED,
        ),
        (
            "INSERT INTO halldetect.probabilities SELECT CAST(month + interval '1 month' AS date),"
            " audit_id, position, entailment, neutral, contradiction FROM halldetect.probabilities",
            "orphaned_probabilities",
            COMPLETED,
        ),
        (
            "UPDATE halldetect.audits SET fedscore = fedscore + 1e-9 WHERE id = 1",
            "scores",
            COMPLETED,
        ),
        (
            "UPDATE halldetect.audits SET label = CASE label WHEN 'faithful' THEN 'hallucinated'"
            " ELSE 'faithful' END WHERE id = 1",
            "scores",
            COMPLETED,
        ),
        (
            "UPDATE halldetect.probabilities SET entailment = array_fill(CAST(0.5 AS real),"
            " ARRAY[cardinality(entailment)])",
            "scores",
            COMPLETED,
        ),
    ],
)
def test_damage_is_found_and_named(batch, find, execute, damage, check, example):
    execute(damage)
    found = find()
    assert list(found) == [check]
    assert (found[check].count, found[check].examples) == (1, (str(example),))


def test_claims_without_a_verdict_are_found(batch, find, execute):
    execute(
        "UPDATE halldetect.claims SET verified_text = NULL, verdict = NULL, score = NULL,"
        " entailment = NULL, entailment_span = NULL, contradiction = NULL, contradiction_span ="
        " NULL, checked_spans = NULL WHERE audit_id = 1 AND position = 0"
    )
    assert list(find()) == ["verdicts"]


def test_many_are_counted_and_a_few_named(service, find, execute, batch):
    for _ in range(6):
        service.submit(RESPONSE)
    execute("UPDATE halldetect.batches SET total = 9")
    finding = find()["batch_totals"]
    assert (finding.count, finding.examples) == (7, ("1", "2", "3", "4", "5"))


def test_of_many_audits_a_sample_is_scored_again(service, find, execute, batch, monkeypatch):
    monkeypatch.setattr("db.doctor_scores.NEWEST", 1)
    monkeypatch.setattr("db.doctor_scores.ANYWHERE", 0)
    service.run()
    execute("UPDATE halldetect.audits SET fedscore = 1 - fedscore WHERE id IN (1, 4)")
    finding = find()["scores"]
    assert (finding.count, finding.examples) == (1, ("4",))
    monkeypatch.setattr("db.doctor_scores.ANYWHERE", 200)
    assert find()["scores"].examples == ("1", "4")


def test_preselected_audits_are_scored_again_too(service, find, batch):
    service.run(preselected_spans=1)
    assert find() == {}


def test_messages_that_nobody_sends(batch, find, execute, sessions):
    with sessions.begin() as session:
        create_webhook(session, "https://hooks.example.org")
    execute(
        "INSERT INTO halldetect.webhook_deliveries"
        " (webhook_id, batch_id, state, next_attempt_at, due_since)"
        " SELECT w.id, b.id, 'due', now() - interval '20 minutes', now()"
        " FROM halldetect.webhooks AS w, halldetect.batches AS b"
    )
    assert "unsent_webhooks" not in find()
    execute("UPDATE halldetect.webhook_deliveries SET next_attempt_at = now() - interval '1 hour'")
    finding = find()["unsent_webhooks"]
    assert (finding.count, finding.examples) == (1, ("webhook 1",))


def test_a_maintenance_worker_that_is_missed_is_found(find, execute, batch, report_worker):
    execute(
        "UPDATE halldetect.workers SET seen_at = now() - interval '1 minute' WHERE name = 'sweeper'"
    )
    assert list(find()) == ["maintenance"]
    report_worker("sweeper", ["maintenance"], WorkerState.LOADING)
    assert find() == {}
    report_worker("sweeper", ["maintenance"], WorkerState.STOPPING)
    assert list(find()) == ["maintenance"]


def test_without_any_worker_it_is_missed_once_there_is_something_to_do(
    sessions, service, find, execute
):
    with sessions.begin() as session:
        ensure_current_partitions(session)
        create_webhook(session, "https://hooks.example.org")
    service.submit(RESPONSE)
    service.run()
    execute("DELETE FROM halldetect.workers")
    execute("DELETE FROM halldetect.webhook_deliveries")
    assert find() == {}
    execute(
        "INSERT INTO halldetect.webhook_deliveries"
        " (webhook_id, batch_id, state, next_attempt_at, due_since)"
        " SELECT w.id, b.id, 'due', now(), now()"
        " FROM halldetect.webhooks AS w, halldetect.batches AS b"
    )
    assert list(find()) == ["maintenance"]
    execute("DELETE FROM halldetect.webhook_deliveries")
    execute(
        "INSERT INTO halldetect.rescorings (policy_id, selection, total)"
        " SELECT id, '{}', 1 FROM halldetect.policies LIMIT 1"
    )
    assert list(find()) == ["maintenance"]


def test_sweeps_that_do_not_come_are_found(find, batch, report_worker):
    report_worker("sweeper", ["maintenance"], unswept_seconds=400.0)
    finding = find()["maintenance"]
    assert finding.examples == ("sweeper",)
    assert "400 s" in finding.problem
    assert "beat" in finding.mend
    report_worker("other sweeper", ["maintenance"], unswept_seconds=5.0)
    assert find() == {}


def test_leases_of_a_worker_that_is_gone_are_found(service, find, batch):
    service.claim_extraction(owner="gone")
    finding = find()["lost_leases"]
    assert (finding.count, finding.examples) == (1, ("gone",))


def test_leases_that_nobody_takes_back_are_found(service, find, execute, batch):
    service.claim_extraction(owner="both")
    assert find() == {}
    execute(
        "UPDATE halldetect.audits SET lease_expires_at = now() - interval '2 minutes'"
        " WHERE lease_owner IS NOT NULL"
    )
    assert find()["lost_leases"].examples == ("both",)


def test_a_line_that_no_worker_serves_is_found(find, execute, batch):
    execute("UPDATE halldetect.workers SET queues = '{nli}' WHERE name = 'both'")
    assert list(find()) == ["extraction_line"]
    execute(
        "UPDATE halldetect.workers SET seen_at = now() - interval '1 minute' WHERE name = 'both'"
    )
    assert list(find()) == ["extraction_line", "verification_line"]


def test_a_worker_that_cannot_work_serves_no_line(find, report_worker, batch):
    report_worker("both", ["extraction", "nli"], WorkerState.FAILED, "no weights")
    found = find()
    assert set(found) == {"failed_workers", "extraction_line", "verification_line"}
    assert "no weights" in found["failed_workers"].problem


def test_a_line_that_stands_still_is_found(service, find, execute, batch):
    execute("UPDATE halldetect.audits SET submitted_at = submitted_at - interval '3 minutes'")
    assert set(find()) >= {"extraction_line", "verification_line"}
    service.claim_extraction(owner="both")
    service.claim_verification(owner="both")
    assert not {"extraction_line", "verification_line"} & set(find())


def test_a_worker_that_loads_its_models_is_waited_for(find, execute, report_worker, batch):
    report_worker("both", ["extraction", "nli"], WorkerState.LOADING)
    execute(
        "UPDATE halldetect.audits SET submitted_at = submitted_at - interval '3 minutes'"
        " WHERE status = 'queued'"
    )
    assert find() == {}


def test_missing_partitions_are_found(sessions, find, execute):
    assert len(find()["partitions"].examples) == 2
    with sessions.begin() as session:
        ensure_current_partitions(session, 1)
    [missing] = find()["partitions"].examples
    with sessions.begin() as session:
        ensure_current_partitions(session, 2)
    assert find() == {}
    execute(f"DROP TABLE halldetect.{missing}")
    assert find()["partitions"].examples == (missing,)


def test_failed_audits_are_counted_and_are_no_finding(sessions, find, execute, batch):
    assert failed_audits(sessions) == 0
    execute(
        "UPDATE halldetect.audits SET status = 'failed', error = 'odd', finished_at = now()"
        " WHERE status IN ('queued', 'extracted')"
    )
    assert failed_audits(sessions) == 2
    assert find() == {}


def test_a_check_cannot_write(batch, sessions, find, monkeypatch):
    harmful = Invariant("harm", "DELETE FROM halldetect.workers RETURNING 1 AS id", "none", "none")
    monkeypatch.setattr("db.doctor.INVARIANTS", [harmful])
    with pytest.raises(InternalError, match="read-only transaction"):
        find()
