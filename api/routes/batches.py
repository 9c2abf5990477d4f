"""Batches: upload one, see how far it is, read its results, cancel it."""

from __future__ import annotations

from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from api import examples, openapi
from api.bodies import JSON_LINES, check_media_type, content_encoding
from api.cursors import make_cursor, read_cursor
from api.dependencies import IdempotencyKey, NoQuery, PathId, Service, ServiceOf, identity
from api.idempotency import Repeatable
from api.ingestion import store_batch
from api.keys import Reader, Submitter
from api.problems import Kind, Problem, not_found
from api.results import result_lines
from api.schemas import (
    BatchPage,
    BatchView,
    PageQuery,
    SubmittedBatch,
    TrailQuery,
    UploadOptions,
)
from api.uploads import Spool, receive
from db.batches import batch_state, cancel_batch, list_batches
from db.ownership import Caller
from db.policies import get_policy

router = APIRouter(prefix="/batches", tags=["batches"])
_SELECTION = {"list": "batches"}  # batches have no filters: any cursor of theirs fits


@router.post(
    "",
    summary="Submit a batch",
    description=openapi.BATCH_DESCRIPTION,
    status_code=202,
    response_model=SubmittedBatch,
    openapi_extra={"requestBody": openapi.batch_body()},
    responses={
        202: openapi.json_example("Stored.", "SUBMITTED_BATCH", location=True),
        **openapi.problems(409, 415),
        400: openapi.problem(examples.DAMAGED_UPLOAD),
        413: openapi.problem(examples.UPLOAD_TOO_LARGE),
        422: openapi.problem(examples.BATCH_REFUSED),
        429: openapi.problem(examples.TOO_MUCH_WAITING),
    },
)
async def submit(
    caller: Submitter,
    request: Request,
    options: Annotated[UploadOptions, Query()],
    key: IdempotencyKey,
    service: ServiceOf,
) -> Response:
    """Take in an upload, then store it in a thread of its own."""
    check_media_type(request, JSON_LINES)
    packed = content_encoding(request, accepted=["gzip"]) == "gzip"
    await run_in_threadpool(_check_options, service, options)
    if key is None:  # with a key it may be the repetition of what was stored
        await run_in_threadpool(_check_backlog, service, caller)
    with Spool(
        max_bytes=service.settings.max_upload_bytes, packed=packed, room=service.upload_room
    ) as spool:
        await receive(request, spool)
        repeatable = Repeatable.of(request, key, spool.sha256, caller)
        return await anyio.to_thread.run_sync(
            store_batch, service, spool, options, repeatable, limiter=service.uploads
        )


def _check_options(service: Service, options: UploadOptions) -> None:
    """Refuse before the upload what would be refused after it."""
    own = service.settings.profile
    if options.profile not in (None, own):
        raise Problem(
            422,
            Kind.INVALID_REQUEST,
            f"query profile: this service runs the profile {own.value!r} (HALLDETECT_PROFILE)",
        )
    if options.policy is not None:
        with service.transaction() as session:
            get_policy(session, options.policy)


def _check_backlog(service: Service, caller: Caller) -> None:
    """Refuse before the upload if nothing more may wait."""
    with service.transaction() as session:
        service.waiting_limits.look(session, caller.api_key_id)


@router.get(
    "",
    summary="List batches",
    response_model=BatchPage,
    responses={
        200: openapi.json_example("A page.", "BATCH_PAGE"),
        **openapi.problems(400, 422),
    },
)
def list_all(caller: Reader, query: Annotated[PageQuery, Query()], service: ServiceOf) -> BatchPage:
    """List batches, newest first. A page of large batches may be shorter than `limit`."""
    before_id = read_cursor(query.cursor, _SELECTION)
    with service.transaction() as session:
        items, more = list_batches(session, before_id=before_id, limit=query.limit, caller=caller)
    return BatchPage(
        items=[BatchView.of(state) for state in items],
        next_cursor=make_cursor(items[-1].id, _SELECTION) if more else None,
    )


@router.get(
    "/{batch_id}",
    summary="Read a batch",
    response_model=BatchView,
    dependencies=[NoQuery],
    responses={
        200: openapi.json_example("How far it is.", "BATCH"),
        **openapi.problems(404, 422),
    },
)
def read(caller: Reader, batch_id: PathId, service: ServiceOf) -> BatchView:
    """Return how far a batch is, counted from its audits."""
    return _view(service, identity(batch_id, "batch"), caller)


@router.get(
    "/{batch_id}/results",
    summary="Read the results of a batch",
    response_class=StreamingResponse,
    responses={200: openapi.result_lines(), **openapi.problems(404, 422)},
)
def results(
    caller: Reader, batch_id: PathId, query: Annotated[TrailQuery, Query()], service: ServiceOf
) -> StreamingResponse:
    """Return one trail a line in the order of submission, also of audits that still wait."""
    number = identity(batch_id, "batch")
    _view(service, number, caller)
    return StreamingResponse(
        result_lines(service, number, with_matrix=query.with_matrix), media_type=JSON_LINES[0]
    )


@router.post(
    "/{batch_id}/cancel",
    summary="Cancel a batch",
    response_model=BatchView,
    dependencies=[NoQuery],
    responses={
        200: openapi.json_example("Cancelled.", "CANCELLED_BATCH"),
        **openapi.problems(404, 422),
    },
)
def cancel(caller: Submitter, batch_id: PathId, service: ServiceOf) -> BatchView:
    """Cancel what has not ended. What has ended stays; cancelling again changes nothing."""
    number = identity(batch_id, "batch")
    with service.transaction() as session:
        state = cancel_batch(session, number, caller=caller)
    if state is None:
        raise not_found(f"batch {number}")
    return BatchView.of(state)


def _view(service: Service, number: int, caller: Caller) -> BatchView:
    with service.transaction() as session:
        state = batch_state(session, number, caller=caller)
    if state is None:
        raise not_found(f"batch {number}")
    return BatchView.of(state)
