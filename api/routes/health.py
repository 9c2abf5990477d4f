"""Whether the process lives, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy.orm import Session

from api import examples, openapi
from api.dependencies import Service, ServiceOf
from api.problems import Kind, Problem
from api.schemas import Health, Readiness
from db.engine import DatabaseUnavailable
from db.migrate import current_revision
from db.models import WorkerState
from db.policies import get_policy
from db.schema_version import version_fault
from db.workers import live_workers
from halldetect.errors import PolicyError
from halldetect.logs import get_logger
from queues.names import Queue
from queues.wake_ups import QueueUnavailable

router = APIRouter(tags=["health"])
_log = get_logger(__name__)
_MORE = "the log of the API says more"


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
    database, warnings = _look_at_database(service)
    missing = database | _without_broker(service)
    if missing:
        raise Problem(
            503,
            Kind.NOT_READY,
            "; ".join(f"{name}: {reason}" for name, reason in missing.items()),
            headers={"Retry-After": "5"},
            members={"missing": list(missing)},
        )
    return Readiness(warnings=warnings)


def _look_at_database(service: Service) -> tuple[dict[str, str], list[str]]:
    """Return what is missing, each with what to do, and what keeps work waiting."""
    try:
        fault = version_fault(current_revision(service.engine))
        if fault is not None:
            return {"schema": fault}, []
        with service.transaction() as session:
            return _without_policy(service, session), _idle_queues(session)
    except DatabaseUnavailable as error:
        # The reason names hosts and users: it is for the log.
        _log.warning("the database is missing", error=str(error))
        return {"database": f"Postgres cannot be used at DATABASE_URL; {_MORE}"}, []


def _without_policy(service: Service, session: Session) -> dict[str, str]:
    """Look for the policy of records that name none; it may be stored after the start."""
    try:
        get_policy(session, service.settings.policy_name)
    except PolicyError as error:
        return {"policy": f"{error} (HALLDETECT_POLICY)"}
    return {}


def _idle_queues(session: Session) -> list[str]:
    """Say of each queue that nobody takes work from why that is."""
    warnings = []
    for queue in Queue:
        states = {worker.state for worker in live_workers(session, queue=queue.value)}
        if not states:
            warnings.append(f"queue {queue.value}: no worker reports; what is sent to it waits")
        elif states == {WorkerState.FAILED}:
            warnings.append(
                f"queue {queue.value}: its workers cannot load their models; what is sent to it "
                "waits (`halldetect status` and their logs say why)"
            )
    return warnings


def _without_broker(service: Service) -> dict[str, str]:
    try:
        service.wake_ups.queued(Queue.EXTRACTION)
    except QueueUnavailable as error:
        _log.warning("the broker is missing", error=str(error))
        return {"broker": f"Redis does not answer at REDIS_URL; {_MORE}"}
    return {}
