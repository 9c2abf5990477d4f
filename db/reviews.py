"""Reviews: what people think of verdicts; only ever added, and kept when the audit is deleted."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from db.models import Audit, Claim, Review
from db.ownership import UNRESTRICTED, Caller
from halldetect.errors import InputError
from halldetect.record import text_fault
from halldetect.scoring.verdict import Verdict

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class NotVerified(InputError):
    """The claim has no verdict yet that could be reviewed."""


@dataclass(frozen=True, slots=True)
class StoredReview:
    """One review.

    Parameters
    ----------
    id, claim_id, audit_id : int
        The review, and what it is of; the claim and the audit may be deleted by now.
    claim_text : str
        The claim, as it was read.
    verdict : Verdict
        The verdict on it, as it stood.
    reviewer : str
        Who reviewed.
    reviewer_verdict : Verdict
        What the verdict should be.
    note : str or None
        Why.
    created_at : datetime
        When, in UTC.
    """

    id: int
    claim_id: int
    audit_id: int
    claim_text: str
    verdict: Verdict
    reviewer: str
    reviewer_verdict: Verdict
    note: str | None
    created_at: datetime


def reviewer_fault(name: str) -> str | None:
    """Return why nobody can review under a name, or None.

    Two names that look the same would be two reviewers, of whom each has a last word.
    """
    if fault := text_fault(name):
        return fault
    for position, character in enumerate(name):
        if unicodedata.category(character) in _INVISIBLE:
            return (
                f"has a control or invisible character (U+{ord(character):04X}) at position "
                f"{position}: write the name without it"
            )
    if name != name.strip():
        return "starts or ends with white space: another reviewer by that name would do"
    return None


def add_review(
    session: Session,
    claim_id: int,
    *,
    reviewer: str,
    reviewer_verdict: Verdict,
    note: str | None,
    caller: Caller = UNRESTRICTED,
) -> StoredReview | None:
    """Store a review, quoting the claim and the verdict on it.

    None when the caller has no such claim.

    Raises
    ------
    NotVerified
        When the claim has no verdict yet.
    """
    found = _claim(session, claim_id, caller)
    if found is None:
        return None
    claim, owner = found
    if claim.verdict is None:
        raise NotVerified(
            f"claim {claim_id} has no verdict yet: review it when audit {claim.audit_id} is "
            "completed"
        )
    review = session.scalars(
        insert(Review)
        .values(
            claim_id=claim_id,
            audit_id=claim.audit_id,
            api_key_id=owner,
            claim_text=claim.text,
            verdict=claim.verdict,
            reviewer=reviewer,
            reviewer_verdict=reviewer_verdict,
            note=note,
        )
        .returning(Review)
    ).one()
    return _stored(review)


def get_review(
    session: Session, review_id: int, *, caller: Caller = UNRESTRICTED
) -> StoredReview | None:
    """Return a review of the caller's audits, or None when there is none of that id."""
    wanted = (Review.id == review_id, caller.sees(Review.api_key_id))
    review = session.scalar(select(Review).where(*wanted))
    return None if review is None else _stored(review)


def reviews_of_claim(
    session: Session, claim_id: int, *, caller: Caller = UNRESTRICTED
) -> list[StoredReview] | None:
    """Return what was said of a claim, oldest first.

    None when the caller has and had no such claim.
    """
    wanted = (Review.claim_id == claim_id, caller.sees(Review.api_key_id))
    found = session.scalars(select(Review).where(*wanted).order_by(Review.id))
    reviews = [_stored(review) for review in found]
    if not reviews and _claim(session, claim_id, caller) is None:
        return None
    return reviews


def _claim(session: Session, claim_id: int, caller: Caller) -> tuple[Claim, int | None] | None:
    """Return a claim and whose it is, or None when the caller has none of that id."""
    row = session.execute(
        select(Claim, Audit.api_key_id)
        .join(Audit, Audit.id == Claim.audit_id)
        .where(Claim.id == claim_id, caller.sees(Audit.api_key_id))
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def _stored(review: Review) -> StoredReview:
    return StoredReview(
        id=review.id,
        claim_id=review.claim_id,
        audit_id=review.audit_id,
        claim_text=review.claim_text,
        verdict=review.verdict,
        reviewer=review.reviewer,
        reviewer_verdict=review.reviewer_verdict,
        note=review.note,
        created_at=review.created_at,
    )
