"""Failed audits: put one back into the line, or all of a batch."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy.orm import Session

from api import examples, openapi
from api.dependencies import NoQuery, PathId, Service, ServiceOf, identity
from api.keys import Submitter
from api.problems import Kind, Problem, not_found
from api.schemas import RetriedBatch, SubmittedAudit
from db.audits import get_audit
from db.batches import batch_state
from db.ownership import Caller
from db.retries import Retried, retry_audit, retry_batch
from db.trails import StoredAudit

router = APIRouter()


@router.post(
    "/audits/{audit_id}/retry",
    tags=["audits"],
    summary="Retry a failed audit",
    status_code=202,
    response_model=SubmittedAudit,
    dependencies=[NoQuery],
    responses={
        202: openapi.json_example("It waits again.", "SUBMITTED_AUDIT"),
        **openapi.problems(404, 422),
        409: openapi.problem(examples.NOT_FAILED),
    },
)
def retry_one(caller: Submitter, audit_id: PathId, service: ServiceOf) -> SubmittedAudit:
    """Put a failed audit back into the line, with its claims if it has them and no faults."""
    number = identity(audit_id, "audit")
    with service.transaction() as session:
        _audit(session, number, caller)
        retried = retry_audit(session, number)
        audit = _audit(session, number, caller)
    if not retried.total:
        raise _nothing(f"audit {number} is {audit.status.value}: only failed audits are retried")
    _wake(service, retried, audit_id=number)
    return SubmittedAudit(id=audit.id, custom_id=audit.custom_id, status=audit.status)


@router.post(
    "/batches/{batch_id}/retry",
    tags=["batches"],
    summary="Retry the failed audits of a batch",
    status_code=202,
    response_model=RetriedBatch,
    dependencies=[NoQuery],
    responses={
        202: openapi.json_example("They wait again.", "RETRIED_BATCH"),
        **openapi.problems(404, 422),
        409: openapi.problem(examples.NOTHING_FAILED),
    },
)
def retry_all(caller: Submitter, batch_id: PathId, service: ServiceOf) -> RetriedBatch:
    """Put every failed audit of a batch back into the line; the others stay as they are."""
    number = identity(batch_id, "batch")
    with service.transaction() as session:
        if batch_state(session, number, caller=caller) is None:
            raise not_found(f"batch {number}")
        retried = retry_batch(session, number)
    if not retried.total:
        raise _nothing(f"no audit of batch {number} has failed: there is nothing to retry")
    _wake(service, retried, batch_id=number)
    return RetriedBatch(
        id=str(number),
        retried=retried.total,
        queued=retried.queued,
        extracted=retried.extracted,
    )


def _audit(session: Session, number: int, caller: Caller) -> StoredAudit:
    audit = get_audit(session, number, caller=caller)
    if audit is None:
        raise not_found(f"audit {number}")
    return audit


def _nothing(detail: str) -> Problem:
    return Problem(409, Kind.NOTHING_FAILED, detail)


def _wake(
    service: Service,
    retried: Retried,
    *,
    batch_id: int | None = None,
    audit_id: int | None = None,
) -> None:
    for stage in retried.stages:
        service.wake(stage, batch_id=batch_id, audit_id=audit_id, reason="retried")
