"""Audits go in whole or not at all, and their texts come back as they were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from db.audits import AuditFilter, get_audit, list_audits, stream_results
from db.models import Audit, Batch, Document
from db.submission import BatchAccepted, BatchRefused, BatchUpload, submit_audit
from halldetect.errors import InputError, PolicyError
from halldetect.record import make_record


def count(sessions, table):
    with sessions.begin() as session:
        return session.scalar(select(func.count()).select_from(table))


def upload(sessions, records, *, refuse=(), max_errors=100):
    with (
        sessions.begin() as session,
        BatchUpload(session, default_policy="embedded", max_errors=max_errors) as batch,
    ):
        for line, record in enumerate(records, start=1):
            batch.add(line, record)
        for line, message in refuse:
            batch.refuse(line, message)
        return batch.finish()


def record(number, **fields):
    return make_record(
        **{"custom_id": f"r{number}", "source": "A source.", "response": "Said."} | fields
    )


def test_a_source_is_stored_once(sessions):
    accepted = upload(sessions, [record(n, source=f"Source {n % 3}.") for n in range(30)])
    assert accepted == BatchAccepted(batch_id=1, total=30)
    upload(sessions, [record(1, source="Source 1.")])
    assert count(sessions, Document) == 3
    assert count(sessions, Audit) == 31


# What a text format of COPY could take for its own: escapes, NULL, the end of the data.
HARD_TEXTS = [
    "Path C:\\200\\new\\table ends with \\N and a tab\there.\n\\.\nLast line.",
    "\\N",
    "\\.",
    '{"a", NULL} \'quoted\' "double"',
    "one\u2028two\u0085three\u2029four \U0001f375 é e\u0301 \ufeff",
    " leading and trailing \r\n",
]


@pytest.mark.parametrize("hard", HARD_TEXTS)
def test_texts_come_back_as_they_were(sessions, hard):
    metadata = {hard: [hard, 1.5, None, True, {"deep": hard}], "large": 10**40}
    fields = {"source": f"x{hard}", "response": hard, "context": hard, "metadata": metadata}
    upload(sessions, [record(1, custom_id=hard, **fields)])
    with sessions.begin() as session:
        single = submit_audit(session, record(1, custom_id=hard, **fields), "embedded")
        for audit in (session.get(Audit, 1), session.get(Audit, single)):
            assert audit.custom_id == audit.response == audit.context == hard
            assert audit.caller_metadata == metadata
            assert session.get(Document, audit.document_id).text == f"x{hard}"
        (streamed,) = stream_results(session, 1)
        assert (streamed.custom_id, streamed.response, streamed.metadata) == (hard, hard, metadata)


def test_a_refused_batch_stores_nothing(sessions):
    refused = upload(
        sessions,
        [record(1), record(2), record(1), record(3, policy="no-such"), record(2)],
        refuse=[(9, "column 3: not valid JSON")],
    )
    assert isinstance(refused, BatchRefused)
    assert [fault.line for fault in refused.errors] == [3, 4, 5, 9]
    assert refused.total_errors == 4
    assert refused.errors[0].message == "custom_id 'r1' is that of line 1 already"
    assert "no policy is called 'no-such'; there are: embedded, mean" in refused.errors[1].message
    assert [count(sessions, table) for table in (Document, Batch, Audit)] == [0, 0, 0]


def test_more_errors_than_are_listed_are_counted(sessions):
    refused = upload(
        sessions, [record(1)], refuse=[(n, "bad") for n in range(2, 300)], max_errors=5
    )
    assert len(refused.errors) == 5
    assert refused.total_errors == 298


def test_an_upload_that_breaks_off_stores_nothing(sessions):
    def lines():
        yield record(1)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        upload(sessions, lines())
    assert [count(sessions, table) for table in (Document, Batch, Audit)] == [0, 0, 0]


def test_a_batch_without_a_record_is_refused(sessions):
    with pytest.raises(InputError, match="holds no record"):
        upload(sessions, [])


def test_a_single_audit_under_an_unknown_policy_is_refused(sessions):
    with pytest.raises(PolicyError, match="no policy is called 'x'"), sessions.begin() as session:
        submit_audit(session, record(1, policy="x"), "embedded")
    assert count(sessions, Document) == 0


def test_one_new_source_from_many_clients_at_once_is_one_document(sessions):
    def submit(number):
        with sessions.begin() as session:
            return submit_audit(session, record(number, source="New."), "embedded")

    with ThreadPoolExecutor(5) as pool:
        audits = list(pool.map(submit, range(20)))
    assert len(set(audits)) == 20
    assert count(sessions, Document) == 1


def test_uploads_with_the_same_sources_in_other_orders_do_not_deadlock(sessions):
    numbers = list(range(200))

    def submit(order):
        return upload(sessions, [record(n, source=f"Source {n}.") for n in order])

    with ThreadPoolExecutor(4) as pool:
        accepted = list(pool.map(submit, [numbers, numbers[::-1], numbers, numbers[::-1]]))
    assert [batch.total for batch in accepted] == [200] * 4
    assert count(sessions, Document) == 200


def test_a_source_whose_first_client_rolls_back_is_stored_by_the_second(sessions):
    with sessions() as first, ThreadPoolExecutor(1) as pool:
        first.begin()
        submit_audit(first, record(1, source="New."), "embedded")

        def second():
            with sessions.begin() as session:
                return submit_audit(session, record(2, source="New."), "embedded")

        waiting = pool.submit(second)  # for the first to commit or not
        first.rollback()
        audit_id = waiting.result()
    with sessions.begin() as session:
        document = session.get(Audit, audit_id).document_id
        assert session.get(Document, document).text == "New."


def test_large_batches_pass_the_limit_of_bound_values(sessions):
    assert upload(sessions, (record(n) for n in range(20_000))).total == 20_000
    assert count(sessions, Audit) == 20_000


def test_pages_list_each_audit_once_while_others_arrive(sessions):
    upload(sessions, [record(n) for n in range(250)])
    seen = []
    before = None
    while True:
        with sessions.begin() as session:
            page = list_audits(session, AuditFilter(batch_id=1), before_id=before, limit=50)
        if not page:
            break
        seen += [audit.custom_id for audit in page]
        before = int(page[-1].id)
        upload(sessions, [record(n) for n in range(10)])
    assert seen == [f"r{n}" for n in range(250)][::-1]


def test_an_audit_that_waits_can_be_read(sessions, service):
    (audit_id,) = service.submit("It waits.", batch=False, priority=7, metadata={"team": "a"})
    with sessions.begin() as session:
        audit = get_audit(session, audit_id, with_matrix=True)
        assert get_audit(session, audit_id + 1) is None
    assert (audit.status, audit.outcome, audit.claims, audit.matrix) == ("queued", None, [], None)
    assert (audit.priority, audit.metadata, audit.batch_id) == (7, {"team": "a"}, None)
