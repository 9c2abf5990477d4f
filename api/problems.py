"""Problem documents, after RFC 9457: what a client is told instead of an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "application/problem+json"
REQUEST_ID_HEADER = "X-Request-ID"
_TYPE_PREFIX = "urn:halldetect:problem:"


class Kind(StrEnum):
    """What a client can tell problems apart by; the last part of ``type``."""

    INVALID_REQUEST = "invalid-request"
    INVALID_CURSOR = "invalid-cursor"
    BATCH_REFUSED = "batch-refused"
    DAMAGED_UPLOAD = "damaged-upload"
    TOO_LARGE = "too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    KEY_IN_PROGRESS = "idempotency-key-in-progress"
    KEY_REUSED = "idempotency-key-reused"
    NOTHING_FAILED = "nothing-failed"
    TOO_MANY_WEBHOOKS = "too-many-webhooks"
    TOO_MANY_SECRETS = "too-many-secrets"
    TOO_MUCH_WAITING = "too-much-waiting"
    TOO_MANY_REQUESTS = "too-many-requests"
    TOO_SLOW = "too-slow"
    MISDIRECTED = "misdirected"
    CROSS_SITE = "cross-site"
    UNAVAILABLE = "unavailable"
    OUTCOME_UNKNOWN = "outcome-unknown"
    NOT_READY = "not-ready"
    INTERNAL = "internal-error"


_TITLES = {
    Kind.INVALID_REQUEST: "The request cannot be used as it is",
    Kind.INVALID_CURSOR: "The cursor belongs to no page of this list",
    Kind.BATCH_REFUSED: "Nothing of the batch was stored",
    Kind.DAMAGED_UPLOAD: "The upload is damaged",
    Kind.TOO_LARGE: "A limit is exceeded",
    Kind.UNSUPPORTED_MEDIA_TYPE: "The body is of a kind that is not read here",
    Kind.UNAUTHORIZED: "The request needs a valid API key",
    Kind.FORBIDDEN: "The API key may not be used for this",
    Kind.NOT_FOUND: "There is no such thing",
    Kind.METHOD_NOT_ALLOWED: "The address does not take this method",
    Kind.KEY_IN_PROGRESS: "The first request with this Idempotency-Key is still running",
    Kind.KEY_REUSED: "The Idempotency-Key belongs to another request",
    Kind.NOTHING_FAILED: "There is nothing to retry",
    Kind.TOO_MANY_WEBHOOKS: "The owner has as many webhooks as may be",
    Kind.TOO_MANY_SECRETS: "The webhook has as many secrets as may be",
    Kind.TOO_MUCH_WAITING: "Too many audits wait already",
    Kind.TOO_MANY_REQUESTS: "Too many requests came in a short time",
    Kind.TOO_SLOW: "The body arrived too slowly",
    Kind.MISDIRECTED: "The request is for another host",
    Kind.CROSS_SITE: "A page of another site sent the request",
    Kind.UNAVAILABLE: "The service cannot answer now",
    Kind.OUTCOME_UNKNOWN: "The request may have been carried out, or not",
    Kind.NOT_READY: "The service cannot do its work yet",
    Kind.INTERNAL: "The service made a mistake",
}


class ProblemResponse(Response):
    """A problem document that is answered; it notes its kind in the request for logs and counts.

    Parameters
    ----------
    problem : Problem
        What is answered.
    content : bytes
        Its document.
    """

    def __init__(self, problem: Problem, content: bytes) -> None:
        super().__init__(content, problem.status, problem.headers, media_type=MEDIA_TYPE)
        self._kind = problem.kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        scope.setdefault("state", {})["problem"] = self._kind
        await super().__call__(scope, receive, send)


class Problem(Exception):
    """A problem document on its way to the client.

    Parameters
    ----------
    status : int
        The answer's status code.
    kind : Kind
        Becomes ``type`` and ``title``.
    detail : str
        What is wrong with this request, where, and what to do.
    headers : Mapping
        More headers of the answer.
    members : Mapping
        More members of the document, as JSON values.
    """

    def __init__(
        self,
        status: int,
        kind: Kind,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = headers
        self.members = members or {}

    def response(self) -> Response:
        """Return the answer."""
        document = problem_document(self.status, self.kind, self.detail, self.members)
        # A name from the request may hold half a surrogate pair, which no UTF-8 can.
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        return ProblemResponse(self, text.encode("utf-8", errors="replace"))


def problem_document(
    status: int, kind: Kind, detail: str, members: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the members of a problem document in their order."""
    return {
        "type": _TYPE_PREFIX + kind,
        "title": _TITLES[kind],
        "status": status,
        "detail": detail,
        **members,
    }


class FieldError(BaseModel):
    """What is wrong with one value of a request."""

    place: str = Field(description="`query`, `path`, `header` or `body`.")
    field: str
    message: str


class LineError(BaseModel):
    """What is wrong with one line of an upload."""

    line: int = Field(description="Physical line from 1, blank lines counted.")
    column: int | None = Field(default=None, description="Where its JSON ends to be JSON.")
    message: str


class ProblemDocument(BaseModel):
    """Why a request was not answered, after RFC 9457."""

    type: str = Field(description="Tells kinds of problems apart; it is a name, not an address.")
    title: str = Field(description="The kind of problem in words.")
    status: int
    detail: str = Field(description="What is wrong with this request and what to do.")
    errors: list[FieldError | LineError] | None = Field(
        default=None, description="The single faults, where there may be several."
    )
    total_errors: int | None = Field(
        default=None, description="How many faulty lines there are, listed or not."
    )
    missing: list[str] | None = Field(
        default=None, description="What is not ready: `database`, `schema`, `policy`, `broker`."
    )


def not_found(what: str) -> Problem:
    """Return the problem of a thing that is not there."""
    return Problem(404, Kind.NOT_FOUND, f"there is no {what}")
