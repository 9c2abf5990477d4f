"""The one place where errors become answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from api.problems import REQUEST_ID_HEADER, FieldError, Kind, Problem
from db.engine import CommitUnknown, DatabaseUnavailable, SchemaMismatch
from db.idempotency import KeyInProgress, KeyReused
from db.webhook_secrets import TooManySecrets
from db.webhooks import TooManyWebhooks
from halldetect.errors import InputError, LimitError
from halldetect.logs import get_logger
from halldetect.wording import fault_message

_log = get_logger(__name__)

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# Where pydantic's own words speak of Python.
_WORDING = {"extra_forbidden": "is no parameter here", "missing": "is missing"}
_RETRY_DATABASE = {"Retry-After": "5"}
_RETRY_KEY = {"Retry-After": "1"}


def add_problem_handlers(app: FastAPI) -> None:
    """Let every error that leaves a route of `app` become a problem document."""
    app.add_exception_handler(Problem, _as_it_is)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(HTTPException, _of_the_router)
    app.add_exception_handler(LimitError, _too_large)
    app.add_exception_handler(InputError, _invalid)
    app.add_exception_handler(DatabaseUnavailable, _unavailable)
    app.add_exception_handler(CommitUnknown, _of_unknown_outcome)
    app.add_exception_handler(SchemaMismatch, _of_another_version)
    app.add_exception_handler(KeyInProgress, _in_progress)
    app.add_exception_handler(KeyReused, _reused)
    app.add_exception_handler(TooManyWebhooks, _too_many_webhooks)
    app.add_exception_handler(TooManySecrets, _too_many_secrets)
    app.add_exception_handler(Exception, _internal)


async def _as_it_is(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _invalid_parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = _field_errors(error.errors())
    detail = "; ".join(f"{fault.place} {fault.field}: {fault.message}" for fault in faults)
    members = {"errors": [fault.model_dump() for fault in faults]}
    return Problem(422, Kind.INVALID_REQUEST, detail, members=members).response()


def _field_errors(errors: Sequence[Any]) -> list[FieldError]:
    # The rejected value stays out: it may be large, secret, or no JSON (NaN).
    return [
        FieldError(
            place=str(error["loc"][0]),
            field=".".join(str(part) for part in error["loc"][1:]),
            message=_WORDING.get(error["type"], fault_message(error)),
        )
        for error in errors
    ]


async def _of_the_router(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return Problem(
            404, Kind.NOT_FOUND, "nothing is found at this address; /docs lists what there is"
        ).response()
    if error.status_code == 405:
        allowed = ", ".join(_methods_of(request))
        return Problem(
            405,
            Kind.METHOD_NOT_ALLOWED,
            f"this address takes {allowed}",
            headers={"Allow": allowed},
        ).response()
    return Problem(
        error.status_code, Kind.INVALID_REQUEST, error.detail, headers=error.headers
    ).response()


def _methods_of(request: Request) -> list[str]:
    # The router's own header names the first route of the path alone.
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.router.routes
        )
    ]


async def _too_large(_: Request, error: Exception) -> Response:
    return Problem(413, Kind.TOO_LARGE, str(error)).response()


async def _invalid(_: Request, error: Exception) -> Response:
    return Problem(422, Kind.INVALID_REQUEST, str(error)).response()


async def _too_many_webhooks(_: Request, error: Exception) -> Response:
    return Problem(409, Kind.TOO_MANY_WEBHOOKS, str(error)).response()


async def _too_many_secrets(_: Request, error: Exception) -> Response:
    return Problem(409, Kind.TOO_MANY_SECRETS, str(error)).response()


async def _unavailable(_: Request, error: Exception) -> Response:
    # The reason names hosts and users: it is for the log.
    _log.warning("a request found no database", error=str(error))
    return Problem(
        503,
        Kind.UNAVAILABLE,
        "the database cannot be reached now; nothing was stored, try again soon",
        headers=_RETRY_DATABASE,
    ).response()


async def _of_unknown_outcome(_: Request, error: Exception) -> Response:
    _log.warning("the database went away during a commit", error=str(error))
    return Problem(
        503,
        Kind.OUTCOME_UNKNOWN,
        "the database went away while this was being stored, so that it may be stored or not: send "
        "it again with the Idempotency-Key that it had; if it had none, look what is there first",
        headers=_RETRY_DATABASE,
    ).response()


async def _of_another_version(_: Request, error: Exception) -> Response:
    _log.warning("a request met tables of another version", error=str(error))
    return Problem(
        503,
        Kind.UNAVAILABLE,
        "the database is of another version than this API, which answers when both are of one; "
        "nothing was stored, and /readyz says what is missing",
        headers=_RETRY_DATABASE,
    ).response()


async def _in_progress(_: Request, error: Exception) -> Response:
    return Problem(409, Kind.KEY_IN_PROGRESS, str(error), headers=_RETRY_KEY).response()


async def _reused(_: Request, error: Exception) -> Response:
    return Problem(422, Kind.KEY_REUSED, str(error)).response()


async def _internal(request: Request, _error: Exception) -> Response:
    # What went wrong is in the server's log; it is nobody else's business. This answer is given
    # outside all middleware, so it names the request itself.
    return Problem(
        500,
        Kind.INTERNAL,
        "an unforeseen error; the log of the API says which",
        # The server closes it, since the error goes on to its log: a client that is not told would
        # lose its next request.
        headers={REQUEST_ID_HEADER: request.state.request_id, "Connection": "close"},
    ).response()
