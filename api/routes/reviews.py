"""Reviews: say what a verdict should be, and see how verdicts fare."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api import examples, openapi
from api.bodies import JsonBody
from api.cursors import make_cursor, read_cursor
from api.dependencies import NoQuery, PathId, ServiceOf, identity
from api.json_bodies import body_schema, read_body
from api.keys import Reader, Reviewer
from api.problems import not_found
from api.review_schemas import (
    FlaggedPage,
    FlaggedQuery,
    ReviewBody,
    ReviewList,
    ReviewSummary,
    ReviewView,
    SummaryQuery,
)
from db.batches import batch_state
from db.flagged_claims import flag_counts, next_flagged
from db.review_agreement import agreement
from db.reviews import add_review, get_review, reviews_of_claim

router = APIRouter(tags=["reviews"])


@router.post(
    "/claims/{claim_id}/reviews",
    status_code=201,
    response_model=ReviewView,
    dependencies=[NoQuery],
    openapi_extra={"requestBody": body_schema(ReviewBody, examples.REVIEW_BODY)},
    responses={
        201: openapi.json_example("Stored.", "REVIEW", location=True),
        **openapi.problems(404, 413, 415, 422),
    },
)
def review(
    caller: Reviewer, claim_id: PathId, body: JsonBody, response: Response, service: ServiceOf
) -> ReviewView:
    """Review a claim. Reviews are only added: of each reviewer the last one counts."""
    number = identity(claim_id, "claim")
    said = read_body(body, ReviewBody)
    with service.transaction() as session:
        stored = add_review(
            session,
            number,
            reviewer=said.reviewer,
            reviewer_verdict=said.verdict,
            note=said.note,
            caller=caller,
        )
    if stored is None:
        raise not_found(f"claim {number}")
    response.headers["Location"] = f"/v1/reviews/{stored.id}"
    return ReviewView.of(stored)


@router.get(
    "/claims/{claim_id}/reviews",
    response_model=ReviewList,
    dependencies=[NoQuery],
    responses={
        200: openapi.json_example("All of them.", "REVIEW_LIST"),
        **openapi.problems(404, 422),
    },
)
def list_of_claim(caller: Reader, claim_id: PathId, service: ServiceOf) -> ReviewList:
    """List the reviews of a claim, oldest first, also after the claim was deleted."""
    number = identity(claim_id, "claim")
    with service.transaction() as session:
        found = reviews_of_claim(session, number, caller=caller)
    if found is None:
        raise not_found(f"claim {number}")
    return ReviewList(items=[ReviewView.of(stored) for stored in found])


@router.get(
    "/reviews/{review_id}",
    response_model=ReviewView,
    dependencies=[NoQuery],
    responses={
        200: openapi.json_example("The review.", "REVIEW"),
        **openapi.problems(404, 422),
    },
)
def read(caller: Reader, review_id: PathId, service: ServiceOf) -> ReviewView:
    """Return a review."""
    number = identity(review_id, "review")
    with service.transaction() as session:
        stored = get_review(session, number, caller=caller)
    if stored is None:
        raise not_found(f"review {number}")
    return ReviewView.of(stored)


@router.get(
    "/batches/{batch_id}/flagged-claims",
    response_model=FlaggedPage,
    responses={
        200: openapi.json_example("A page.", "FLAGGED_PAGE"),
        **openapi.problems(400, 404, 422),
    },
)
def list_flagged(
    caller: Reader, batch_id: PathId, query: Annotated[FlaggedQuery, Query()], service: ServiceOf
) -> FlaggedPage:
    """List claims to review: contradicted or unsupported, and not reviewed by the reviewer yet."""
    number = identity(batch_id, "batch")
    selection = {"flagged": number, "reviewer": query.reviewer}
    after_claim = read_cursor(query.cursor, selection)
    with service.transaction() as session:
        if batch_state(session, number, caller=caller) is None:
            raise not_found(f"batch {number}")
        found = next_flagged(
            session, number, query.reviewer, after_claim=after_claim, limit=query.limit + 1
        )
        counts = flag_counts(session, number, query.reviewer)
    items = found[: query.limit]
    more = len(found) > len(items)
    next_cursor = make_cursor(int(items[-1].claim.id), selection) if more else None
    return FlaggedPage.of(items, counts, next_cursor)


@router.get(
    "/batches/{batch_id}/review-summary",
    response_model=ReviewSummary,
    responses={
        200: openapi.json_example("The comparison.", "REVIEW_SUMMARY"),
        **openapi.problems(404, 422),
    },
)
def summarise(
    caller: Reader, batch_id: PathId, query: Annotated[SummaryQuery, Query()], service: ServiceOf
) -> ReviewSummary:
    """Compare the reviews of a batch's claims with the verdicts that stood."""
    number = identity(batch_id, "batch")
    with service.transaction() as session:
        if batch_state(session, number, caller=caller) is None:
            raise not_found(f"batch {number}")
        return ReviewSummary.of(agreement(session, batch_id=number, reviewer=query.reviewer))
