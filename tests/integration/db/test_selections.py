"""A selection is the same set of completed audits whenever it is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text

from db.models import Audit
from db.selections import FixedSelection, Selection, fix_selection, selected
from halldetect.errors import InputError, PolicyError

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks."


def ids_of(session, fixed):
    return list(session.scalars(select(Audit.id).where(*selected(fixed)).order_by(Audit.id)))


@pytest.fixture
def select_ids(sessions):
    """Return the ids that a selection holds, and check that it counts them."""

    def find(**filters):
        with sessions.begin() as session:
            fixed, total = fix_selection(session, Selection(**filters))
            read_back = FixedSelection.of_json(fixed.to_json())
            assert read_back == fixed
            found = ids_of(session, read_back)
            assert len(found) == total
            return found

    return find


@pytest.fixture
def batches(service):
    """Three audits under `embedded`, two under `paper`, and one that still waits."""
    first = service.submit(TRUE, FALSE, "Thanks!")
    second = service.submit(FALSE, TRUE, policy="paper")
    service.run()
    service.submit(TRUE)
    return first, second


def test_without_filters_every_completed_audit_is_selected(select_ids, batches):
    assert select_ids() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"ids": (5, 2, 2)}, [2, 5]),
        ({"batch_id": 2}, [4, 5]),
        ({"policy": "paper"}, [4, 5]),
        ({"outcome": "no_checkable_claims"}, [3]),
        ({"custom_id": "r2"}, [2, 5]),
        ({"custom_id": "r2", "batch_id": 1}, [2]),
        ({"ids": (1, 4), "batch_id": 1}, [1]),
        ({"custom_id": "nobody's"}, []),
    ],
)
def test_all_filters_hold(select_ids, batches, filters, expected):
    assert select_ids(**filters) == expected


def test_labels_are_those_under_the_audits_own_policy(select_ids, batches, sessions):
    with sessions.begin() as session:
        labels = {row.id: row.label for row in session.execute(select(Audit.id, Audit.label))}
    for label in ("hallucinated", "faithful"):
        assert select_ids(label=label) == [i for i, found in labels.items() if found == label]
    assert set(labels.values()) >= {"hallucinated", None}


def test_the_time_of_submission_is_a_half_open_range(select_ids, batches, sessions):
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    with sessions.begin() as session:
        for audit_id in range(1, 6):
            session.execute(
                text("UPDATE halldetect.audits SET submitted_at = :at WHERE id = :id"),
                {"at": moment + timedelta(days=audit_id), "id": audit_id},
            )
    third, fourth = moment + timedelta(days=3), moment + timedelta(days=4)
    assert select_ids(submitted_from=third) == [3, 4, 5]
    assert select_ids(submitted_before=third) == [1, 2]
    assert select_ids(submitted_from=third, submitted_before=fourth) == [3]


def test_what_completes_later_does_not_belong_to_it(service, sessions, batches):
    with sessions.begin() as session:
        fixed, total = fix_selection(session, Selection())
    service.run()
    with sessions.begin() as session:
        assert total == 5
        assert ids_of(session, fixed) == [1, 2, 3, 4, 5]
        assert fix_selection(session, Selection())[1] == 6


def test_an_audit_that_waited_among_the_selected_does_not_join_them(service, sessions):
    service.submit(TRUE, FALSE)
    first, second = service.claim_extraction()
    service.extract(first)
    service.extract(second)
    claimed = service.claim_verification()
    service.verify(claimed[1])
    with sessions.begin() as session:
        fixed, total = fix_selection(session, Selection())
    service.verify(claimed[0])
    with sessions.begin() as session:
        assert total == 1
        assert ids_of(session, fixed) == [2]


def test_ids_that_are_no_completed_audits_are_named(select_ids, batches):
    with pytest.raises(InputError, match=r"no completed audit has the id 6, 99$"):
        select_ids(ids=(99, 6, 1))
    with pytest.raises(InputError, match="id 7, 8, 9, 10, 11 and 3 others"):
        select_ids(ids=tuple(range(7, 15)))


def test_a_batch_or_policy_that_is_not_there_is_refused(select_ids, batches):
    with pytest.raises(InputError, match="no batch 99"):
        select_ids(batch_id=99)
    with pytest.raises(PolicyError, match="no policy is called 'nobody'"):
        select_ids(policy="nobody")


def test_ten_thousand_ids_fit_into_one_selection(select_ids, batches, sessions):
    with sessions.begin() as session:
        session.execute(
            text(
                "INSERT INTO halldetect.audits (document_id, policy_id, response, status, outcome,"
                " supported, contradicted, unsupported, finished_at)"
                " SELECT 1, 1, '', 'completed', 'no_checkable_claims', 0, 0, 0, now()"
                " FROM generate_series(1, 10000)"
            )
        )
    everyone = select_ids()
    assert select_ids(ids=tuple(everyone[:10_000])) == everyone[:10_000]
