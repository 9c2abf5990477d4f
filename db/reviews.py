"""Reviews: what people think of verdicts; only ever added, and kept when the audit is deleted."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, insert, select, tuple_
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from db.judgement_models import Review
from db.models import Audit, Claim
from db.ownership import UNRESTRICTED, Caller
from db.trails import StoredAudit, StoredClaim, load_trails
from halldetect.errors import InputError
from halldetect.record import text_fault
from halldetect.scoring.verdict import Verdict

FLAGS = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
"""Verdicts that say something against a claim."""


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


@dataclass(frozen=True, slots=True)
class FlaggedClaim:
    """A claim that has something against it, and the audit it stands in."""

    audit: StoredAudit
    claim: StoredClaim


@dataclass(frozen=True, slots=True)
class FlagCounts:
    """How far a reviewer is with a batch: its flagged claims, and those of them reviewed."""

    flagged: int
    reviewed: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """What reviewers said where one verdict stood; of each reviewer's reviews of a claim the last.

    Parameters
    ----------
    verdict : Verdict
        The verdict that stood.
    supported, contradicted, unsupported : int
        Reviews that say so instead, or agree.
    """

    verdict: Verdict
    supported: int
    contradicted: int
    unsupported: int

    @property
    def reviews(self) -> int:
        """All of them."""
        return self.supported + self.contradicted + self.unsupported

    @property
    def agreed(self) -> int:
        """Those that say the same."""
        return int(getattr(self, self.verdict.value))

    @property
    def precision(self) -> float | None:
        """Share that says the same; None without a review."""
        return self.agreed / self.reviews if self.reviews else None


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


def flag_precision(agreements: Sequence[Agreement]) -> float | None:
    """Return how many of the reviewed flags are right; None when none was reviewed.

    A flag is right when the reviewer, too, finds that the source does not bear the claim out,
    whichever of the two flags it should have been.
    """
    flags = [one for one in agreements if one.verdict in FLAGS]
    reviews = sum(one.reviews for one in flags)
    return 1 - sum(one.supported for one in flags) / reviews if reviews else None


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


def next_flagged(
    session: Session, batch_id: int, reviewer: str, *, after_claim: int | None, limit: int
) -> list[FlaggedClaim]:
    """Return flagged claims of a batch that a reviewer has not reviewed, in order of submission.

    Parameters
    ----------
    after_claim : int or None
        Only claims that come after this one.
    limit : int
        Most claims.
    """
    statement = (
        _flagged(select(Claim.id, Claim.audit_id), batch_id)
        .where(~_is_reviewed_by(reviewer))
        .order_by(Audit.line, Claim.position)
        .limit(limit)
    )
    if after_claim is not None:
        place = session.execute(
            select(Audit.line, Claim.position)
            .join(Audit, Audit.id == Claim.audit_id)
            .where(Claim.id == after_claim, Audit.batch_id == batch_id)
        ).one_or_none()
        if place is None:
            return []
        statement = statement.where(
            Audit.line >= place.line, tuple_(Audit.line, Claim.position) > tuple(place)
        )
    rows = session.execute(statement).all()
    trails = load_trails(session, list({row.audit_id: None for row in rows}), with_matrix=False)
    found = {
        int(claim.id): FlaggedClaim(audit, claim) for audit in trails for claim in audit.claims
    }
    return [found[row.id] for row in rows]


def flag_counts(session: Session, batch_id: int, reviewer: str) -> FlagCounts:
    """Count the flagged claims of a batch, and those that a reviewer has reviewed."""
    counts = (func.count(), func.count().filter(_is_reviewed_by(reviewer)))
    return FlagCounts(*session.execute(_flagged(select(*counts), batch_id)).one())


def agreement(
    session: Session, *, batch_id: int | None = None, reviewer: str | None = None
) -> list[Agreement]:
    """Compare reviews with the verdicts that stood, one entry a verdict.

    Parameters
    ----------
    batch_id : int, optional
        Only reviews of claims of this batch; without one also those of audits since deleted.
    reviewer : str, optional
        Only this reviewer's.
    """
    latest = (
        select(Review.verdict, Review.reviewer_verdict)
        .ext(distinct_on(Review.claim_id, Review.reviewer))
        .order_by(Review.claim_id, Review.reviewer, Review.id.desc())
    )
    if batch_id is not None:
        latest = latest.join(Audit, Audit.id == Review.audit_id).where(Audit.batch_id == batch_id)
    if reviewer is not None:
        latest = latest.where(Review.reviewer == reviewer)
    said = latest.subquery()
    counted = select(said.c.verdict, said.c.reviewer_verdict, func.count()).group_by(
        said.c.verdict, said.c.reviewer_verdict
    )
    counts: Counter[tuple[Verdict, Verdict]] = Counter()
    for verdict, reviewer_verdict, count in session.execute(counted):
        counts[verdict, reviewer_verdict] = count
    return [
        Agreement(stood, **{one.value: counts[stood, one] for one in Verdict}) for stood in Verdict
    ]


def _flagged(statement: Select[*tuple[Any, ...]], batch_id: int) -> Select[*tuple[Any, ...]]:
    """Restrict to the flagged claims of a batch."""
    return (
        statement.select_from(Claim)
        .join(Audit, Audit.id == Claim.audit_id)
        .where(Audit.batch_id == batch_id, Claim.verdict.in_(FLAGS))
    )


def _is_reviewed_by(reviewer: str) -> ColumnElement[bool]:
    return (
        select(Review.id).where(Review.claim_id == Claim.id, Review.reviewer == reviewer).exists()
    )


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
