"""Scorings: score stored audits under another policy, and see what that would change."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api import examples, openapi
from api.bodies import JsonBody
from api.dependencies import IdempotencyKey, NoQuery, PathId, ServiceOf, identity
from api.idempotency import Repeatable
from api.json_bodies import body_schema, read_body
from api.keys import Reader, Submitter
from api.problems import not_found
from api.scoring_schemas import ComparisonQuery, ScoringBody, ScoringView
from db.comparison import Comparison, compare
from db.engine import read_one_snapshot
from db.policies import get_policy
from db.rescorings import RescoringStatus, create_rescoring, get_rescoring

router = APIRouter(prefix="/scorings", tags=["scorings"])


@router.post(
    "",
    status_code=202,
    response_model=ScoringView,
    dependencies=[NoQuery],
    openapi_extra={"requestBody": body_schema(ScoringBody, examples.SCORING_BODY)},
    responses={
        202: openapi.json_example("Stored.", "SUBMITTED_SCORING", location=True),
        **openapi.problems(409, 413, 415, 422),
    },
)
def submit(
    caller: Submitter, request: Request, body: JsonBody, key: IdempotencyKey, service: ServiceOf
) -> Response:
    """Score completed audits under a policy. No model runs, and no score is ever replaced."""
    wanted = read_body(body, ScoringBody)
    repeatable = Repeatable.of(request, key, hashlib.sha256(body).digest(), caller)
    with service.transaction() as session:
        answered = repeatable.first_answer(session)
        if answered is not None:
            return answered
        policy = get_policy(session, wanted.policy)
        status = create_rescoring(session, policy, wanted.selection.selection(), caller=caller)
        location = f"/v1/scorings/{status.id}"
        response = repeatable.accepted(session, location, ScoringView.of(status))
    service.wake_rescoring(status.id)
    return response


@router.get(
    "/{scoring_id}",
    response_model=ScoringView,
    dependencies=[NoQuery],
    responses={
        200: openapi.json_example("How far it is.", "SCORING"),
        **openapi.problems(404, 422),
    },
)
def read(caller: Reader, scoring_id: PathId, service: ServiceOf) -> ScoringView:
    """Return how far a rescoring is."""
    number = identity(scoring_id, "scoring")
    with service.transaction() as session:
        status = get_rescoring(session, number, caller=caller)
        return ScoringView.of(_found(status, number))


@router.get(
    "/{scoring_id}/comparison",
    response_model=Comparison,
    responses={
        200: openapi.json_example("What changes.", "COMPARISON"),
        **openapi.problems(404, 422),
    },
)
def comparison(
    caller: Reader,
    scoring_id: PathId,
    query: Annotated[ComparisonQuery, Query()],
    service: ServiceOf,
) -> Comparison:
    """Compare the audits of a rescoring before and after: labels that flip, claims, scores."""
    number = identity(scoring_id, "scoring")
    with service.transaction() as session:
        read_one_snapshot(session)
        status = _found(get_rescoring(session, number, caller=caller), number)
        against = None if query.against is None else get_policy(session, query.against)
        return compare(session, status, against, examples=query.examples)


def _found(status: RescoringStatus | None, number: int) -> RescoringStatus:
    if status is None:
        raise not_found(f"scoring {number}")
    return status
