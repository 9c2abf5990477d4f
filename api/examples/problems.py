"""Problems, as routes answer them."""

from __future__ import annotations

from typing import Any

from api.problems import Kind, problem_document


def _problem(status: int, kind: Kind, detail: str, **members: Any) -> dict[str, Any]:
    return problem_document(status, kind, detail, members)


PROBLEMS = {
    400: _problem(
        400, Kind.INVALID_CURSOR, "the cursor is damaged: send next_cursor exactly as it came"
    ),
    401: _problem(401, Kind.UNAUTHORIZED, "this is no API key of this service"),
    403: _problem(403, Kind.FORBIDDEN, "this API key lacks the scope 'read'; it has: submit"),
    404: _problem(404, Kind.NOT_FOUND, "there is no audit 17"),
    409: _problem(
        409,
        Kind.KEY_IN_PROGRESS,
        "a request with this Idempotency-Key is in progress: try again soon",
    ),
    413: _problem(
        413, Kind.TOO_LARGE, "the body has more than 16,777,216 bytes (HALLDETECT_MAX_BODY_BYTES)"
    ),
    415: _problem(
        415, Kind.UNSUPPORTED_MEDIA_TYPE, "send the body as Content-Type: application/json"
    ),
    422: _problem(
        422, Kind.INVALID_REQUEST, "query limit: Input should be less than or equal to 1000"
    ),
    429: _problem(
        429,
        Kind.TOO_MANY_REQUESTS,
        "this API key may make 6,000 requests a minute (HALLDETECT_REQUESTS_PER_MINUTE): try "
        "again in 1 s",
    ),
    500: _problem(500, Kind.INTERNAL, "an unforeseen error; the log of the API says which"),
    503: _problem(
        503,
        Kind.UNAVAILABLE,
        "the database cannot be reached now; nothing was stored, try again soon",
    ),
}

RECORD_REFUSED = _problem(422, Kind.INVALID_REQUEST, "field response: Field required")
BATCH_REFUSED = _problem(
    422,
    Kind.BATCH_REFUSED,
    "2 errors in the upload: correct the lines and send all of it again",
    errors=[
        {"line": 3, "column": 34, "message": "column 34: not valid JSON (Expecting value)"},
        {"line": 7, "message": "field source: Field required"},
    ],
    total_errors=2,
)
DAMAGED_UPLOAD = _problem(
    400,
    Kind.DAMAGED_UPLOAD,
    "the gzip of the upload ends too early: nothing was stored, send it again",
)
UPLOAD_TOO_LARGE = _problem(
    413,
    Kind.TOO_LARGE,
    "the batch has more than 1,000,000 lines (HALLDETECT_MAX_BATCH_LINES): send it in parts",
)
TOO_MUCH_WAITING = _problem(
    429,
    Kind.TOO_MUCH_WAITING,
    "about 2,000,000 audits wait, and at most 2,000,000 may (HALLDETECT_MAX_WAITING_AUDITS);"
    " nothing was stored: send it again later",
)
NOT_FAILED = _problem(
    409, Kind.NOTHING_FAILED, "audit 17 is completed: only failed audits are retried"
)
NOTHING_FAILED = _problem(
    409, Kind.NOTHING_FAILED, "no audit of batch 4 has failed: there is nothing to retry"
)
TOO_MANY_WEBHOOKS = _problem(
    409, Kind.TOO_MANY_WEBHOOKS, "there are 10 webhooks of this owner already: delete one"
)
TOO_MANY_SECRETS = _problem(
    409,
    Kind.TOO_MANY_SECRETS,
    "messages of webhook 2 are signed with 5 secrets already: rotate again when one of them has "
    "ended, or with a shorter overlap",
)
NOT_READY = _problem(
    503,
    Kind.NOT_READY,
    "broker: Redis does not answer at REDIS_URL; the log of the API says more",
    missing=["broker"],
)
