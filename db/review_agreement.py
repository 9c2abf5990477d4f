"""How reviewers agree with the verdicts that stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from db.flagged_claims import FLAGS
from db.models import Audit, Review
from halldetect.scoring.verdict import Verdict


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


def flag_precision(agreements: Sequence[Agreement]) -> float | None:
    """Return how many of the reviewed flags are right; None when none was reviewed.

    A flag is right when the reviewer, too, finds that the source does not bear the claim out,
    whichever of the two flags it should have been.
    """
    flags = [one for one in agreements if one.verdict in FLAGS]
    reviews = sum(one.reviews for one in flags)
    return 1 - sum(one.supported for one in flags) / reviews if reviews else None


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
