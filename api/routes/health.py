"""Whether the process lives, and whether it can do its work."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter

from api import examples, openapi
from api.dependencies import Service, ServiceOf
from api.problems import Kind, Problem
from api.schemas import Health, Readiness
from db.engine import DatabaseUnavailable
from db.migrate import current_revision, head_revision
from db.policies import get_policy
from halldetect.errors import PolicyError
from queues.names import Queue
from queues.wake_ups import QueueUnavailable

router = APIRouter(tags=["health"])
_head_revision = cache(head_revision)  # it reads files that do not change


@router.get(
    "/healthz",
    summary="Whether it lives",
    responses={200: openapi.json_example("It lives.", "HEALTH")},
)
async def alive() -> Health:
    """Tell that the process answers; it asks no other server."""
    # Not in a thread: all of them may be waiting for the database.
    return Health()


@router.get(
    "/readyz",
    summary="Whether it can work",
    response_model=Readiness,
    responses={
        200: openapi.json_example("It can work.", "READINESS"),
        503: openapi.problem(examples.NOT_READY),
    },
)
def ready(service: ServiceOf) -> Readiness:
    """Tell whether the database, its schema, the default policy and the broker are there."""
    missing = _without_database(service) | _without_broker(service)
    if missing:
        raise Problem(
            503,
            Kind.NOT_READY,
            "; ".join(f"{name}: {reason}" for name, reason in missing.items()),
            headers={"Retry-After": "5"},
            members={"missing": list(missing)},
        )
    return Readiness()


def _without_database(service: Service) -> dict[str, str]:
    try:
        current = current_revision(service.engine)
    except DatabaseUnavailable as error:
        return {"database": str(error)}
    head = _head_revision()
    if current != head:
        return {
            "schema": f"the database is at revision {current or 'none'}, this version needs "
            f"{head}: run `python -m db.migrate upgrade`"
        }
    return _without_policy(service)


def _without_policy(service: Service) -> dict[str, str]:
    """Look for the policy of records that name none; it may be stored after the start."""
    try:
        with service.transaction() as session:
            get_policy(session, service.settings.policy_name)
    except PolicyError as error:
        return {"policy": f"{error} (HALLDETECT_POLICY)"}
    except DatabaseUnavailable as error:
        return {"database": str(error)}
    return {}


def _without_broker(service: Service) -> dict[str, str]:
    try:
        service.wake_ups.queued(Queue.EXTRACTION)
    except QueueUnavailable as error:
        return {"broker": str(error)}
    return {}
