"""The review part of the service's API."""

from __future__ import annotations

from functools import partial

from cli.client.answers import Answer, read_answer
from cli.client.service import Service
from halldetect.scoring.verdict import Verdict
from halldetect.trail import Evidence, TextSpan

_read = partial(read_answer, about="reviews")


class ReviewedClaim(Answer):
    """A claim to review.

    Parameters
    ----------
    id : str
        What a review is posted to.
    text, verified_text : str
        The claim, and what the encoder was shown for it.
    span : TextSpan
        Where it stands in the response.
    verdict : Verdict
        What is to be judged.
    entailment, contradiction : Evidence
        What speaks most for it and most against it.
    """

    id: str
    text: str
    verified_text: str
    span: TextSpan
    verdict: Verdict
    entailment: Evidence
    contradiction: Evidence


class FlaggedClaim(Answer):
    """A claim to review and the response it stands in."""

    audit_id: str
    custom_id: str | None
    line: int | None
    context: str | None
    response: str
    claim: ReviewedClaim


class FlaggedPage(Answer):
    """The next claims to review, and how far the reviewer is with the batch."""

    items: list[FlaggedClaim]
    next_cursor: str | None
    flagged: int
    reviewed: int


class Agreement(Answer):
    """What reviewers said where one verdict stood."""

    verdict: Verdict
    reviews: int
    precision: float | None


class ReviewSummary(Answer):
    """How the reviews of a batch compare with the verdicts."""

    by_verdict: list[Agreement]
    flag_precision: float | None


class ReviewService(Service):
    """A running service, as a reviewer uses it; its methods raise as those of `Service` do."""

    def flagged_claims(
        self, batch_id: int, reviewer: str, *, cursor: str | None, limit: int
    ) -> FlaggedPage:
        """Return flagged claims that the reviewer has not reviewed, after those of a page before.

        Parameters
        ----------
        cursor : str or None
            `next_cursor` of the page before; None for the first page.
        limit : int
            Most claims.
        """
        query: dict[str, str | int] = {"reviewer": reviewer, "limit": limit}
        if cursor is not None:
            query["cursor"] = cursor
        path = f"/v1/batches/{batch_id}/flagged-claims"
        return _read(FlaggedPage, self._document(self._request("GET", path, params=query)))

    def review(self, claim_id: str, reviewer: str, verdict: Verdict) -> None:
        """Store what the verdict on a claim should be."""
        body = {"reviewer": reviewer, "verdict": verdict.value}
        self._document(self._request("POST", f"/v1/claims/{claim_id}/reviews", json=body))

    def review_summary(self, batch_id: int) -> ReviewSummary:
        """Compare the reviews of a batch, by whomever, with its verdicts."""
        path = f"/v1/batches/{batch_id}/review-summary"
        return _read(ReviewSummary, self._document(self._request("GET", path)))
