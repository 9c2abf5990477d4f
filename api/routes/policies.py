"""Policies: store them, and read them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api import examples, openapi
from api.bodies import JsonBody
from api.dependencies import NoQuery, ServiceOf
from api.json_bodies import body_schema, read_body
from api.keys import Administrator, Reader
from api.problems import not_found
from api.schemas import PolicyList, PolicyView
from api.scoring_schemas import PolicyBody
from db.policies import create_policy, find_policy, list_policies
from halldetect.record import text_fault

router = APIRouter(prefix="/policies", tags=["policies"], dependencies=[NoQuery])


@router.post(
    "",
    status_code=201,
    response_model=PolicyView,
    openapi_extra={"requestBody": body_schema(PolicyBody, examples.POLICY_BODY)},
    responses={
        200: {
            "model": PolicyView,
            **openapi.json_example("It was there already.", "NEW_POLICY", location=True),
        },
        201: openapi.json_example("Stored.", "NEW_POLICY", location=True),
        **openapi.problems(413, 415, 422),
    },
)
def create(_: Administrator, body: JsonBody, response: Response, service: ServiceOf) -> PolicyView:
    """Store a policy. Other rules under a name that is taken are a new version, for everybody."""
    policy = read_body(body, PolicyBody).policy()
    with service.transaction() as session:
        stored, is_new = create_policy(session, policy)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = f"/v1/policies/{policy.name}"
    return PolicyView.of(stored)


@router.get(
    "",
    summary="List policies",
    response_model=PolicyList,
    responses={
        200: openapi.json_example("All policies.", "POLICY_LIST"),
        **openapi.problems(422),
    },
)
def list_all(_: Reader, service: ServiceOf) -> PolicyList:
    """List the policies by name, each in its newest version."""
    with service.transaction() as session:
        return PolicyList(items=[PolicyView.of(stored) for stored in list_policies(session)])


@router.get(
    "/{name}",
    summary="Read a policy",
    response_model=PolicyView,
    responses={
        200: openapi.json_example("The policy.", "POLICY"),
        **openapi.problems(404, 422),
    },
)
def read(_: Reader, name: str, service: ServiceOf) -> PolicyView:
    """Return a policy in its newest version."""
    if text_fault(name):
        raise not_found("policy of this name")
    with service.transaction() as session:
        stored = find_policy(session, name)
    if stored is None:
        raise not_found(f"policy {name!r}; /v1/policies lists those there are")
    return PolicyView.of(stored)
