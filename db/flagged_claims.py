"""Claims with something against them: which a reviewer has still to see, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, tuple_
from sqlalchemy.orm import Session

from db.models import Audit, Claim, Review
from db.trails import StoredAudit, StoredClaim, load_trails
from halldetect.scoring.verdict import Verdict

FLAGS = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
"""Verdicts that say something against a claim."""


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
