import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from db.audits import get_audit
from db.flagged_claims import FlagCounts, flag_counts, next_flagged
from db.review_agreement import Agreement, agreement, flag_precision
from db.reviews import NotVerified, add_review, get_review, reviews_of_claim
from halldetect.scoring.verdict import Verdict

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks. A dragon lives in it."


@pytest.fixture
def batch(service):
    batch_id = service.submit(FALSE, TRUE, FALSE)
    service.run()
    return batch_id


def walk(session, batch_id, reviewer, after_claim=None, limit=100):
    found = next_flagged(session, batch_id, reviewer, after_claim=after_claim, limit=limit)
    return [int(one.claim.id) for one in found]


def say(session, claim_id, verdict, reviewer="ada", note=None):
    return add_review(
        session, claim_id, reviewer=reviewer, reviewer_verdict=Verdict(verdict), note=note
    )


def test_flagged_claims_come_in_order_with_the_audit_they_stand_in(sessions, service, batch):
    other = service.submit(FALSE)
    service.run()
    with sessions() as session:
        found = next_flagged(session, batch, "ada", after_claim=None, limit=100)
        assert [(one.audit.line, one.claim.text) for one in found] == [
            (1, "The mill was founded by monks."),
            (1, "A dragon lives in it."),
            (3, "The mill was founded by monks."),
            (3, "A dragon lives in it."),
        ]
        assert all(one.claim.verdict is not Verdict.SUPPORTED for one in found)
        assert len(walk(session, other, "ada")) == 2


def test_pages_go_on_after_a_claim_and_a_review_takes_a_claim_out(sessions, batch):
    with sessions.begin() as session:
        every = walk(session, batch, "ada")
        assert walk(session, batch, "ada", limit=1) == every[:1]
        assert walk(session, batch, "ada", after_claim=every[0], limit=2) == every[1:3]
        assert walk(session, batch, "ada", after_claim=every[-1]) == []
        say(session, every[1], "supported")
        assert walk(session, batch, "ada") == [every[0], *every[2:]]
        assert walk(session, batch, "ada", after_claim=every[1]) == every[2:]
        assert walk(session, batch, "bob") == every
        assert flag_counts(session, batch, "ada") == FlagCounts(flagged=4, reviewed=1)
        assert flag_counts(session, batch, "bob") == FlagCounts(flagged=4, reviewed=0)


def test_a_claim_of_another_batch_is_no_place_in_this_one(sessions, service, batch):
    other = service.submit(FALSE)
    service.run()
    with sessions() as session:
        [first, _] = walk(session, other, "ada")
        assert walk(session, batch, "ada", after_claim=first) == []


def test_a_review_quotes_the_claim_and_the_verdict_as_they_stand(sessions, batch):
    with sessions.begin() as session:
        [claim_id, *_] = walk(session, batch, "ada")
        first = say(session, claim_id, "supported", note=r"see p. 3 \N")
        second = say(session, claim_id, "contradicted")
    with sessions() as session:
        assert reviews_of_claim(session, claim_id) == [first, second]
        assert get_review(session, first.id) == first
        claim = get_audit(session, first.audit_id).claims[0]
    assert (first.claim_text, first.verdict) == (claim.text, claim.verdict)
    assert (first.reviewer, first.reviewer_verdict) == ("ada", Verdict.SUPPORTED)
    assert first.note == r"see p. 3 \N"
    assert first.created_at.tzinfo is not None


def test_reviews_outlive_the_audit(sessions, batch):
    with sessions.begin() as session:
        [claim_id, *_] = walk(session, batch, "ada")
        stored = say(session, claim_id, "supported")
        session.execute(text("DELETE FROM halldetect.audits"))
    with sessions() as session:
        assert reviews_of_claim(session, claim_id) == [stored]
        assert say(session, claim_id, "supported") is None
        assert sum(one.reviews for one in agreement(session)) == 1
        assert sum(one.reviews for one in agreement(session, batch_id=batch)) == 0


def test_what_is_unknown_or_has_no_verdict_cannot_be_reviewed(sessions, service):
    service.submit(FALSE)
    for claimed in service.claim_extraction():
        service.extract(claimed)
    with sessions.begin() as session:
        claim_id = session.scalar(text("SELECT min(id) FROM halldetect.claims"))
        with pytest.raises(NotVerified, match="no verdict yet"):
            say(session, claim_id, "supported")
        assert say(session, claim_id + 1000, "supported") is None
        assert reviews_of_claim(session, claim_id + 1000) is None
        assert reviews_of_claim(session, claim_id) == []
        assert get_review(session, 1) is None


def test_the_last_word_of_each_reviewer_counts(sessions, batch):
    with sessions.begin() as session:
        first, second, third, fourth = walk(session, batch, "ada")
        stood = {
            claim: next_flagged(session, batch, "x", after_claim=None, limit=9)[n].claim.verdict
            for n, claim in enumerate((first, second, third, fourth))
        }
        say(session, first, "supported")
        say(session, first, stood[first].value)
        say(session, second, "supported", reviewer="bob")
        say(session, second, stood[second].value)
        say(session, third, stood[third].value, reviewer="bob")
        all_of_them = agreement(session, batch_id=batch)
        hers = agreement(session, batch_id=batch, reviewer="ada")
    assert sum(one.reviews for one in all_of_them) == 4
    assert sum(one.agreed for one in all_of_them) == 3
    assert flag_precision(all_of_them) == 0.75
    assert sum(one.reviews for one in hers) == 2
    assert flag_precision(hers) == 1.0


def test_the_figures_tell_a_wrong_flag_from_the_other_flag():
    figures = [
        Agreement(Verdict.SUPPORTED, supported=1, contradicted=9, unsupported=0),
        Agreement(Verdict.CONTRADICTED, supported=1, contradicted=1, unsupported=2),
        Agreement(Verdict.UNSUPPORTED, supported=0, contradicted=0, unsupported=0),
    ]
    assert [one.precision for one in figures] == [0.1, 0.25, None]
    assert flag_precision(figures) == 0.75
    assert flag_precision(figures[:1]) is None


@pytest.mark.parametrize(
    "change", ["UPDATE halldetect.reviews SET note = 'x'", "DELETE FROM halldetect.reviews"]
)
def test_a_review_never_changes(sessions, batch, change):
    with sessions.begin() as session:
        say(session, walk(session, batch, "ada")[0], "supported")
    with (
        sessions() as session,
        pytest.raises(DBAPIError, match="never change"),
    ):
        session.execute(text(change))
