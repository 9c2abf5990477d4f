from datetime import UTC, date, datetime

import pytest
from sqlalchemy import text

from db.audits import get_audit, stream_results
from db.batches import batch_state
from db.idempotency import begin, remember
from db.partitions import ensure_partitions
from db.retention import PruneInProgress, pruning
from db.reviews import add_review, reviews_of_claim
from halldetect.scoring.verdict import Verdict

DIGEST = b"a" * 32
RESPONSE = "The mill opened in 1900. A dragon lives in it."
BEFORE = date(2026, 3, 1)
TABLES = (
    *("audits", "claims", "extractions", "verifications", "probabilities", "documents"),
    *("span_tables", "batches", "scorings"),
)


@pytest.fixture
def count(sessions):
    def rows(table, where="true"):
        with sessions() as session:
            return session.scalar(text(f"SELECT count(*) FROM halldetect.{table} WHERE {where}"))

    return rows


@pytest.fixture
def partitions(sessions):
    def names():
        with sessions() as session:
            return set(
                session.scalars(
                    text(
                        "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE"
                        " inhparent = CAST('halldetect.probabilities' AS regclass)"
                    )
                )
            )

    return names


@pytest.fixture
def age(sessions):
    """Moves audits into the past: as if submitted on one day and finished on another."""

    def move(where, submitted, finished=None):
        submitted = datetime.fromisoformat(submitted).replace(tzinfo=UTC)
        finished = submitted if finished is None else datetime.fromisoformat(finished + "T00Z")
        with sessions.begin() as session:
            ensure_partitions(session, submitted.date(), 1)
            session.execute(
                text(
                    "UPDATE halldetect.probabilities SET month = :month WHERE audit_id IN"
                    f" (SELECT id FROM halldetect.audits WHERE {where})"
                ),
                {"month": submitted.date().replace(day=1)},
            )
            session.execute(
                text(
                    "UPDATE halldetect.audits SET submitted_at = :submitted,"
                    " finished_at = CASE WHEN finished_at IS NULL THEN NULL ELSE"
                    f" CAST(:finished AS timestamptz) END WHERE {where}"
                ),
                {"submitted": submitted, "finished": finished},
            )

    return move


@pytest.fixture
def prune(engine):
    def run(before=BEFORE):
        with pruning(engine, before) as it:
            return it.plan, it.run()

    return run


def test_the_plan_says_what_goes_and_deletes_nothing(engine, service, age, count):
    old = service.submit(RESPONSE, RESPONSE, source="An old mill. It burns. So it ends.")
    service.submit(RESPONSE)
    service.run()
    age(f"batch_id = {old}", "2026-01-15")
    before = {table: count(table) for table in TABLES}
    with pruning(engine, BEFORE) as it:
        plan = it.plan
    assert {table: count(table) for table in TABLES} == before
    assert (plan.audits, plan.batches, plan.documents, plan.kept_audits) == (2, 1, 1, 0)
    assert plan.claims == plan.probability_rows == 4
    assert plan.partitions == ("probabilities_2026_01",)
    assert plan.dropped_bytes > 0
    assert plan.freed_bytes > 0
    assert not plan.is_empty


def test_exactly_what_was_planned_goes(service, sessions, age, count, prune, partitions):
    old = service.submit(RESPONSE, RESPONSE, source="An old mill. It burns. So it ends.")
    new = service.submit(RESPONSE, "Thanks!")
    service.run()
    age(f"batch_id = {old}", "2026-01-15")
    with sessions() as session:
        kept = list(stream_results(session, new, with_matrix=True))
    plan, pruned = prune()
    assert (pruned.audits, pruned.documents) == (plan.audits, plan.documents) == (2, 1)
    assert pruned.partitions == plan.partitions == ("probabilities_2026_01",)
    assert "probabilities_2026_01" not in partitions()
    with sessions() as session:
        assert batch_state(session, old) is None
        assert list(stream_results(session, new, with_matrix=True)) == kept
    assert [count(table) for table in TABLES] == [2, 2, 2, 2, 2, 1, 1, 1, 0]
    again, nothing = prune()
    assert again.is_empty
    assert (nothing.audits, nothing.documents, nothing.partitions) == (0, 0, ())


def test_an_audit_loses_its_probabilities_only_with_itself(service, age, count, prune, partitions):
    service.submit(*[RESPONSE] * 3, batch=False)
    service.run()
    age("id = 1", "2026-01-10")
    age("id = 2", "2026-01-31", finished="2026-03-01")
    age("id = 3", "2026-02-02")
    plan, pruned = prune()
    assert plan.partitions == pruned.partitions == ("probabilities_2026_02",)
    assert plan.probability_rows == 4
    assert count("audits") == 1
    assert count("probabilities") == count("claims") == 2
    assert count("probabilities", "audit_id = 2") == 2
    assert "probabilities_2026_01" in partitions()


def test_a_month_that_is_not_over_by_then_keeps_its_table(service, age, count, prune, partitions):
    service.submit(RESPONSE, batch=False)
    service.run()
    age("true", "2026-03-02")
    plan, pruned = prune(date(2026, 3, 15))
    assert (plan.partitions, plan.probability_rows, pruned.audits) == ((), 2, 1)
    assert "probabilities_2026_03" in partitions()
    assert count("probabilities") == 0


def test_what_waits_stays_however_old(service, age, count, prune, partitions):
    service.submit(RESPONSE, RESPONSE, batch=False)
    [first, second] = service.claim_extraction()
    service.extract(first)
    age("true", "2025-01-01")
    plan, pruned = prune()
    assert plan.audits == pruned.audits == 0
    assert count("audits") == 2
    assert "probabilities_2025_01" in partitions()
    service.extract(second)
    service.run()
    assert count("audits", "status = 'completed'") == 2


def test_a_batch_stays_whole_until_its_last_audit_is_old(service, sessions, age, count, prune):
    batch = service.submit(RESPONSE, RESPONSE)
    service.run()
    age("line = 1", "2026-01-10")
    age("line = 2", "2026-01-10", finished="2026-03-01")
    plan, _ = prune()
    assert (plan.audits, plan.kept_audits) == (0, 1)
    with sessions() as session:
        assert batch_state(session, batch).total == 2
    plan, _ = prune(date(2026, 3, 2))
    assert (plan.audits, plan.kept_audits) == (2, 0)
    assert count("audits") == count("batches") == 0


def test_the_day_itself_stays(service, age, count, prune):
    service.submit(RESPONSE, RESPONSE, batch=False)
    service.run()
    age("id = 1", "2026-02-28T23:59:59.999999")
    age("id = 2", "2026-03-01T00:00:00")
    prune()
    assert count("audits", "id = 2") == count("audits") == 1


def test_an_interruption_leaves_whole_audits_and_true_totals(
    engine, service, sessions, age, count, prune, monkeypatch
):
    monkeypatch.setattr("db.retention._CHUNK", 2)
    batch = service.submit(*[RESPONSE] * 5)
    service.run()
    age("true", "2026-01-10")

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pruning(engine, BEFORE) as it:
        it.run(interrupt)
    with sessions() as session:
        state = batch_state(session, batch)
        assert (state.total, state.completed) == (3, 3)
        for audit in stream_results(session, batch, with_matrix=True):
            assert len(audit.matrix.entailment) == len(audit.claims) == 2
    progress = []
    with pruning(engine, BEFORE) as it:
        it.run(progress.append)
    assert progress == [2, 3]
    assert [count(table) for table in TABLES] == [0] * len(TABLES)


def test_a_document_stays_while_an_audit_refers_to_it(service, age, count, prune):
    service.submit(RESPONSE, RESPONSE, batch=False)
    service.run()
    age("id = 1", "2026-01-10")
    _, pruned = prune()
    assert (pruned.audits, pruned.documents, pruned.span_tables) == (1, 0, 0)
    assert count("documents") == count("span_tables") == 1


def test_spans_that_no_verification_uses_go(service, sessions, age, count, prune):
    service.submit(RESPONSE, RESPONSE, batch=False)
    service.run()
    age("id = 1", "2026-01-10")
    with sessions.begin() as session:
        session.execute(
            text(
                "INSERT INTO halldetect.span_tables (document_id, splitter, tokenizer, token_limit,"
                " starts, ends, chunk_granularity, chunk_offsets, chunk_spans, sentences,"
                " unreadable_sentences, tokens, unknown_tokens, windowed_chunks)"
                " SELECT document_id, 'older', tokenizer, token_limit, starts, ends,"
                " chunk_granularity, chunk_offsets, chunk_spans, sentences, unreadable_sentences,"
                " tokens, unknown_tokens, windowed_chunks FROM halldetect.span_tables"
            )
        )
    _, pruned = prune()
    assert pruned.span_tables == 1
    assert count("span_tables", "splitter <> 'older'") == count("span_tables") == 1


def test_reviews_and_policies_stay(service, sessions, age, count, prune):
    service.submit(RESPONSE, batch=False)
    service.run()
    with sessions.begin() as session:
        claim_id = int(get_audit(session, 1).claims[0].id)
        review = add_review(
            session, claim_id, reviewer="ada", reviewer_verdict=Verdict.SUPPORTED, note=None
        )
    age("true", "2026-01-10")
    policies = count("policies")
    prune()
    with sessions() as session:
        assert reviews_of_claim(session, claim_id) == [review]
    assert count("audits") == 0
    assert count("policies") == policies > 0


def test_failed_and_cancelled_audits_go_too(service, sessions, age, count, prune):
    service.submit(RESPONSE, batch=False)
    batch = service.submit(RESPONSE)
    with sessions.begin() as session:
        session.execute(
            text(
                "UPDATE halldetect.audits SET finished_at = now(), status = CASE WHEN batch_id IS"
                " NULL THEN 'failed' ELSE 'cancelled' END, error = CASE WHEN batch_id IS NULL THEN"
                " 'x' END"
            )
        )
    age("true", "2026-01-10")
    plan, _ = prune()
    assert (plan.audits, plan.claims) == (2, 0)
    assert count("audits") == count("batches") == 0
    with sessions() as session:
        assert batch_state(session, batch) is None


def test_a_partition_that_is_being_read_stays_for_the_next_time(
    engine, service, age, prune, partitions, count, monkeypatch
):
    monkeypatch.setattr("db.retention._DROP_SECONDS", 0.05)
    service.submit(RESPONSE, batch=False)
    service.run()
    age("true", "2026-01-10")
    with engine.connect() as reader:
        reader.execute(text("SELECT count(*) FROM halldetect.probabilities"))
        _, pruned = prune()
    assert (pruned.audits, pruned.partitions) == (1, ())
    assert pruned.partitions_in_use == ("probabilities_2026_01",)
    assert "probabilities_2026_01" in partitions()
    plan, pruned = prune()
    assert plan.probability_rows == 2
    assert pruned.partitions == ("probabilities_2026_01",)


def test_an_audit_that_turns_up_late_keeps_its_month(engine, service, age, count):
    service.submit(RESPONSE, RESPONSE, batch=False)
    service.run()
    age("id = 1", "2026-01-10")
    with pruning(engine, BEFORE) as it:
        age("id = 2", "2026-01-31")
        pruned = it.run()
    assert (pruned.audits, pruned.partitions) == (1, ())
    assert count("probabilities", "audit_id = 2") == count("probabilities") == 2


def test_an_upload_meanwhile_keeps_its_document(engine, service, sessions, age, count, prune):
    """A document is not deleted under an audit that is being stored."""
    service.submit(RESPONSE, batch=False)
    service.run()
    age("true", "2026-01-10")
    with sessions() as upload:
        upload.execute(text("SELECT id FROM halldetect.documents FOR KEY SHARE"))
        _, pruned = prune()
        assert (pruned.audits, pruned.documents) == (1, 0)
    _, pruned = prune()
    assert pruned.documents == 1


def test_two_prunes_at_once_are_refused(engine):
    with pruning(engine, BEFORE), pytest.raises(PruneInProgress), pruning(engine, BEFORE):
        pass
    with pruning(engine, BEFORE) as it:
        assert it.plan.is_empty


def test_idempotency_keys_go_when_their_request_is_old(sessions, execute, prune):
    for key in ("old", "new"):
        with sessions.begin() as session:
            remember(session, key, DIGEST, 202, {}, b"")
    execute(
        "UPDATE halldetect.idempotency_keys SET created_at = :day WHERE key = 'old'",
        day="2026-01-31 23:59:59+00",
    )
    execute(
        "UPDATE halldetect.idempotency_keys SET created_at = :day WHERE key = 'new'",
        day=f"{BEFORE} 00:00:00+00",
    )
    plan, pruned = prune()
    assert not plan.is_empty
    assert plan.idempotency_keys == pruned.idempotency_keys == 1
    with sessions.begin() as session:
        assert begin(session, "old", DIGEST) is None
        assert begin(session, "new", DIGEST) is not None
