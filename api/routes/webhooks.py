"""Webhooks: make one, see how its deliveries go, replace its secret, delete it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from api import examples, openapi
from api.bodies import JsonBody
from api.cursors import make_cursor, read_cursor
from api.dependencies import NoQuery, PathId, ServiceOf, identity
from api.json_bodies import body_schema, read_body
from api.keys import Reader, Submitter
from api.problems import not_found
from api.schemas import PageQuery
from api.webhook_schemas import (
    NewSecret,
    NewWebhook,
    RotationBody,
    WebhookBody,
    WebhookPage,
    WebhookView,
)
from db.webhook_secrets import rotate_secret
from db.webhooks import create_webhook, delete_webhook, list_webhooks
from halldetect.webhook_targets import parse_target

router = APIRouter(prefix="/webhooks", tags=["webhooks"])
_SELECTION = {"list": "webhooks"}  # there are no filters: any cursor of theirs fits


@router.post(
    "",
    summary="Make a webhook",
    status_code=201,
    response_model=NewWebhook,
    dependencies=[NoQuery],
    openapi_extra={"requestBody": body_schema(WebhookBody, examples.WEBHOOK_BODY)},
    responses={
        201: openapi.json_example("Stored; the secret is not shown again.", "NEW_WEBHOOK"),
        409: openapi.problem(examples.TOO_MANY_WEBHOOKS),
        **openapi.problems(413, 415, 422),
    },
)
def create(caller: Submitter, body: JsonBody, response: Response, service: ServiceOf) -> NewWebhook:
    """Call an address whenever one of the caller's batches is finished, from the next one on.

    The request is a POST of a small JSON object `{"type": "batch.finished", "timestamp": ...,
    "data": ...}`, `data` being what `GET /v1/batches/{id}` answers, signed after
    [Standard Webhooks](https://www.standardwebhooks.com). Any 2xx answer within ten seconds is a
    success; 410 ends the delivery; whatever else is tried again for about a day.
    """
    url = read_body(body, WebhookBody).url
    parse_target(url, service.settings.allowed_webhook_targets)
    with service.transaction() as session:
        stored, secret = create_webhook(session, url, caller)
    response.headers["Cache-Control"] = "no-store"
    return NewWebhook.of(stored, secret)


@router.get(
    "",
    summary="List webhooks",
    response_model=WebhookPage,
    responses={
        200: openapi.json_example("A page.", "WEBHOOK_PAGE"),
        **openapi.problems(400, 422),
    },
)
def list_all(
    caller: Reader, query: Annotated[PageQuery, Query()], service: ServiceOf
) -> WebhookPage:
    """List webhooks, newest first, each with its last deliveries."""
    before_id = read_cursor(query.cursor, _SELECTION)
    with service.transaction() as session:
        found = list_webhooks(session, before_id=before_id, limit=query.limit + 1, caller=caller)
    items = found[: query.limit]
    more = len(found) > len(items)
    return WebhookPage(
        items=[WebhookView.of(stored) for stored in items],
        next_cursor=make_cursor(items[-1].id, _SELECTION) if more else None,
    )


@router.post(
    "/{webhook_id}/rotate",
    summary="Replace the secret of a webhook",
    response_model=NewSecret,
    dependencies=[NoQuery],
    openapi_extra={"requestBody": body_schema(RotationBody, examples.ROTATION_BODY)},
    responses={
        200: openapi.json_example("Replaced; the secret is not shown again.", "NEW_SECRET"),
        409: openapi.problem(examples.TOO_MANY_SECRETS),
        **openapi.problems(404, 413, 415, 422),
    },
)
def rotate(
    caller: Submitter, webhook_id: PathId, body: JsonBody, response: Response, service: ServiceOf
) -> NewSecret:
    """Give a webhook a new secret, and sign with the old one, too, for `overlap_seconds`.

    `webhook-signature` holds one signature for each secret until then, with a blank between them:
    a receiver that knows either finds its own. No delivery is lost or repeated. Rotating again
    lengthens the time of no secret, and shortens it when told to.
    """
    overlap = timedelta(seconds=read_body(body, RotationBody).overlap_seconds)
    number = identity(webhook_id, "webhook")
    with service.transaction() as session:
        rotated = rotate_secret(session, number, overlap, caller=caller)
    if rotated is None:
        raise not_found(f"webhook {number}")
    response.headers["Cache-Control"] = "no-store"
    return NewSecret.of(number, rotated)


@router.delete(
    "/{webhook_id}",
    summary="Delete a webhook",
    status_code=204,
    response_class=Response,
    dependencies=[NoQuery],
    responses={204: {"description": "It is gone."}, **openapi.problems(404, 422)},
)
def delete(caller: Submitter, webhook_id: PathId, service: ServiceOf) -> Response:
    """Delete a webhook, its secret and its deliveries, those that are due included."""
    number = identity(webhook_id, "webhook")
    with service.transaction() as session:
        if not delete_webhook(session, number, caller=caller):
            raise not_found(f"webhook {number}")
    return Response(status_code=204)
