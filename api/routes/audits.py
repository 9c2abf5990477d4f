"""Single audits: submit one, read one, list all."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api import examples, openapi
from api.bodies import JsonBody
from api.cursors import make_cursor, read_cursor
from api.dependencies import IdempotencyKey, NoQuery, PathId, ServiceOf, identity
from api.idempotency import Repeatable
from api.keys import Reader, Submitter
from api.problems import not_found
from api.records import read_record
from api.results import trail_json
from api.schemas import AuditPage, AuditQuery, SubmittedAudit, TrailQuery
from db.audits import get_audit, list_audits
from db.submission import submit_audit
from db.trails import StoredAudit
from halldetect.logs import get_logger

router = APIRouter(prefix="/audits", tags=["audits"])
_log = get_logger(__name__)


@router.post(
    "",
    summary="Submit an audit",
    status_code=202,
    response_model=SubmittedAudit,
    dependencies=[NoQuery],
    openapi_extra={"requestBody": openapi.record_body()},
    responses={
        202: openapi.json_example("Stored.", "SUBMITTED_AUDIT", location=True),
        **openapi.problems(409, 413, 415),
        422: openapi.problem(examples.RECORD_REFUSED),
        429: openapi.problem(examples.TOO_MUCH_WAITING),
    },
)
def submit(
    caller: Submitter, request: Request, body: JsonBody, key: IdempotencyKey, service: ServiceOf
) -> Response:
    """Submit one record. It overtakes the lines of batches of the same priority."""
    settings = service.settings
    record = read_record(body, settings, unknown_fields="refuse")
    repeatable = Repeatable.of(request, key, hashlib.sha256(body).digest(), caller)
    with service.transaction() as session:
        answered = repeatable.first_answer(session)
        if answered is not None:
            return answered
        service.waiting_limits.look(session, caller.api_key_id)
        service.waiting_limits.admit(1, caller.api_key_id)
        audit_id = submit_audit(session, record, settings.policy_name, caller.api_key_id)
        answer = SubmittedAudit(id=str(audit_id), custom_id=record.custom_id)
        response = repeatable.accepted(session, f"/v1/audits/{audit_id}", answer)
    _log.info("audit submitted", audit_id=audit_id, api_key_id=caller.api_key_id)
    service.wake(audit_id=audit_id)
    return response


@router.get(
    "",
    summary="List audits",
    response_model=AuditPage,
    responses={
        200: openapi.json_example("A page.", "AUDIT_PAGE"),
        **openapi.problems(400, 422),
    },
)
def list_all(
    caller: Reader, query: Annotated[AuditQuery, Query()], service: ServiceOf
) -> AuditPage:
    """List audits, newest first. Audits that are submitted meanwhile do not disturb the pages."""
    before_id = read_cursor(query.cursor, query.selection)
    with service.transaction() as session:
        found = list_audits(
            session, query.filters, before_id=before_id, limit=query.limit + 1, caller=caller
        )
    items = found[: query.limit]
    more = len(found) > len(items)
    return AuditPage(
        items=items,
        next_cursor=make_cursor(int(items[-1].id), query.selection) if more else None,
    )


@router.get(
    "/{audit_id}",
    summary="Read an audit",
    response_model=StoredAudit,
    responses={
        200: openapi.json_example("The trail.", "TRAIL"),
        **openapi.problems(404, 422),
    },
)
def read(
    caller: Reader, audit_id: PathId, query: Annotated[TrailQuery, Query()], service: ServiceOf
) -> Response:
    """Return the whole trail of an audit, as far as it is."""
    number = identity(audit_id, "audit")
    with service.transaction() as session:
        audit = get_audit(session, number, with_matrix=query.with_matrix, caller=caller)
    if audit is None:
        raise not_found(f"audit {number}")
    return Response(trail_json(audit), media_type="application/json")
