"""Requests and answers for the documentation; the trail is that of an audit that was run."""

from __future__ import annotations

import json
from typing import Any

from api.problems import Kind, problem_document

RECORD: dict[str, Any] = {
    "custom_id": "transit-plan",
    "source": "The council approved the transit plan on Tuesday. Mayor Lena Ortiz said it would cut"
    " commutes by about fifteen minutes. Construction starts in March 2026.",
    "response": "The council approved the transit plan on Tuesday."
    " Construction starts in May 2027.",
    "context": "What did the council decide?",
    "metadata": {"model": "writer-7b", "run": "evening"},
    "priority": 0,
}
_SECOND_RECORD = {
    "custom_id": "ferry",
    "source": "The ferry leaves at 7:40 and takes no cars on Sundays.",
    "response": "The ferry leaves at 7:40.",
}
RECORD_LINES = "".join(json.dumps(record) + "\n" for record in (RECORD, _SECOND_RECORD))

SUBMITTED_AUDIT = {"id": "17", "custom_id": "transit-plan", "status": "queued"}
SUBMITTED_BATCH = {"id": "4", "total": 2, "status": "in_progress"}

TRAIL: dict[str, Any] = {
    "id": "17",
    "custom_id": "transit-plan",
    "status": "completed",
    "outcome": "scored",
    "fedscore": 0.9133225306868553,
    "label": "hallucinated",
    "deciding_claim": 1,
    "error": None,
    "policy": {
        "name": "embedded",
        "version": "c3c4f56ff79f19fe",
        "rules": {
            "claim_value": "entailment",
            "aggregation": "min",
            "granularities": None,
            "margin": 0.0,
            "entailment_threshold": 0.75,
            "contradiction_threshold": 0.8,
            "response_threshold": 0.25,
        },
    },
    "counts": {"supported": 1, "contradicted": 1, "unsupported": 0, "rejected": 0, "unaudited": 0},
    "claims": [
        {
            "text": "The council approved the transit plan on Tuesday.",
            "verified_text": "The council approved the transit plan on Tuesday.",
            "span": {"start": 0, "end": 49},
            "origin": "sentence",
            "part": 0,
            "flags": {"name": False, "number": False, "date": True},
            "verdict": "supported",
            "score": 0.9158444404602051,
            "entailment": {
                "probability": 0.91584444,
                "chunk": "16/0",
                "span": {"start": 0, "end": 49},
                "text": "The council approved the transit plan on Tuesday.",
            },
            "contradiction": {
                "probability": 0.26975495,
                "chunk": "16/1",
                "span": {"start": 50, "end": 119},
                "text": "Mayor Lena Ortiz said it would cut commutes by about fifteen minutes.",
            },
            "checked_spans": 5,
            "id": "40",
        },
        {
            "text": "Construction starts in May 2027.",
            "verified_text": "Construction starts in May 2027.",
            "span": {"start": 50, "end": 82},
            "origin": "sentence",
            "part": 0,
            "flags": {"name": False, "number": True, "date": True},
            "verdict": "contradicted",
            "score": 0.08667746931314468,
            "entailment": {
                "probability": 0.08667747,
                "chunk": "16/2",
                "span": {"start": 120, "end": 154},
                "text": "Construction starts in March 2026.",
            },
            "contradiction": {
                "probability": 0.86726636,
                "chunk": "16/2",
                "span": {"start": 120, "end": 154},
                "text": "Construction starts in March 2026.",
            },
            "checked_spans": 5,
            "id": "41",
        },
    ],
    "rejected": [],
    "unaudited": [],
    "generations": [
        {
            "window": {"start": 0, "end": 82},
            "finish": "none",
            "parsed": True,
            "prompt_tokens": 0,
            "output_tokens": 0,
        }
    ],
    "extraction_mode": "covered",
    "document": {
        "sha256": "fb685083e05b67f75749b95304480d7004c58ad3b05ae4cf1ed217876c9d0afe",
        "characters": 154,
        "sentences": 3,
        "unreadable_sentences": 0,
        "tokens": 31,
        "unknown_tokens": 0,
        "windowed_chunks": 0,
    },
    "matrix": None,
    "models": {
        "extractor": {
            "name": "sentences",
            "backend": "sentences",
            "revision": "",
            "dtype": "",
            "device": "cpu",
            "libraries": {},
        },
        "nli": {
            "name": "nli-minilm/model.onnx",
            "backend": "onnx",
            "revision": "sha256:e829b65b5957c47b55b2ba2376938d15fa32f837ea6d98a4aaa95206751e644e",
            "dtype": "float32",
            "device": "cpu",
            "libraries": {"onnxruntime": "1.32.0", "tokenizers": "0.23.3"},
            "max_tokens": 512,
        },
    },
    "warnings": [],
    "metadata": {"model": "writer-7b", "run": "evening"},
    "response": RECORD["response"],
    "context": RECORD["context"],
    "batch_id": "4",
    "line": 1,
    "priority": 0,
    "attempts": 2,
    "submitted_at": "2026-03-01T21:14:03.120456Z",
    "extracted_at": "2026-03-01T21:14:05.480112Z",
    "finished_at": "2026-03-01T21:14:06.013977Z",
}

_SUMMARISED = (
    *("id", "custom_id", "batch_id", "line", "status", "outcome", "fedscore", "label", "error"),
    *("attempts", "submitted_at", "finished_at"),
)
AUDIT_PAGE = {
    "items": [
        {
            **{name: TRAIL[name] for name in _SUMMARISED},
            "faults": 0,
            "policy": TRAIL["policy"]["name"],
            **{
                name: TRAIL["counts"][name] for name in ("supported", "contradicted", "unsupported")
            },
        }
    ],
    "next_cursor": "MTcuYjVhYzRhOGI1MzBmZGI1OQ",
}
_WAITING_TRAIL = {
    **TRAIL,
    "id": "18",
    "custom_id": "ferry",
    "status": "queued",
    **dict.fromkeys(("outcome", "fedscore", "label", "deciding_claim", "counts", "document")),
    **dict.fromkeys(("extraction_mode", "extracted_at", "finished_at")),
    **{name: [] for name in ("claims", "generations")},
    "response": _SECOND_RECORD["response"],
    "context": None,
    "models": {},
    "metadata": {},
    "line": 2,
    "attempts": 0,
}
RESULT_LINES = "".join(json.dumps(trail) + "\n" for trail in (TRAIL, _WAITING_TRAIL))

BATCH: dict[str, Any] = {
    "id": "4",
    "status": "in_progress",
    "created_at": "2026-03-01T21:14:03.120456Z",
    "cancelled_at": None,
    "finished_at": None,
    "total": 2,
    "waiting": 1,
    "queued": 1,
    "extracted": 0,
    "running": 0,
    "completed": 1,
    "failed": 0,
    "cancelled": 0,
    "hallucinated": 1,
    "faithful": 0,
    "no_checkable_claims": 0,
    "supported": 1,
    "contradicted": 1,
    "unsupported": 0,
    "longest_running": None,
}
CANCELLED_BATCH = {
    **BATCH,
    "status": "cancelled",
    "cancelled_at": "2026-03-01T21:15:00.504219Z",
    "finished_at": "2026-03-01T21:15:00.504219Z",
    "waiting": 0,
    "queued": 0,
    "cancelled": 1,
}
RETRIED_BATCH = {"id": "4", "retried": 3, "queued": 1, "extracted": 2}
BATCH_PAGE = {"items": [BATCH], "next_cursor": None}

POLICY = {
    "name": TRAIL["policy"]["name"],
    "version": TRAIL["policy"]["version"],
    "created_at": "2026-03-01T21:00:00Z",
    "rules": TRAIL["policy"]["rules"],
}
POLICY_LIST = {"items": [POLICY]}
_REVIEWED_CLAIM = TRAIL["claims"][1]

REVIEW_BODY: dict[str, Any] = {
    "reviewer": "ada",
    "verdict": "contradicted",
    "note": "The source says March 2026.",
}
REVIEW: dict[str, Any] = {
    "id": "9",
    "claim_id": _REVIEWED_CLAIM["id"],
    "audit_id": TRAIL["id"],
    "claim_text": _REVIEWED_CLAIM["text"],
    "verdict": _REVIEWED_CLAIM["verdict"],
    "reviewer": REVIEW_BODY["reviewer"],
    "reviewer_verdict": REVIEW_BODY["verdict"],
    "note": REVIEW_BODY["note"],
    "created_at": "2026-03-02T09:30:12.004511Z",
}
REVIEW_LIST = {"items": [REVIEW]}
FLAGGED_PAGE = {
    "items": [
        {
            "audit_id": TRAIL["id"],
            **{
                name: TRAIL[name]
                for name in ("custom_id", "line", "fedscore", "label", "context", "response")
            },
            "claim": _REVIEWED_CLAIM,
        }
    ],
    "next_cursor": None,
    "flagged": 1,
    "reviewed": 0,
}


def _agreement(verdict: str, reviews: int, **said: int) -> dict[str, Any]:
    counts = {"supported": 0, "contradicted": 0, "unsupported": 0, **said}
    precision = counts[verdict] / reviews if reviews else None
    return {"verdict": verdict, "reviews": reviews, **counts, "precision": precision}


REVIEW_SUMMARY = {
    "by_verdict": [
        _agreement("supported", 0),
        _agreement("contradicted", 4, contradicted=3, supported=1),
        _agreement("unsupported", 0),
    ],
    "flag_precision": 0.75,
}
POLICY_BODY: dict[str, Any] = {
    "name": "strict",
    "rules": {"claim_value": "entailment", "aggregation": "min", "response_threshold": 0.1},
}
_NEW_VERSION = {"name": "strict", "version": "460d6fbe58e9436b"}
NEW_POLICY = {
    **_NEW_VERSION,
    "created_at": "2026-03-02T08:00:31.702113Z",
    "rules": {**POLICY["rules"], **POLICY_BODY["rules"]},
}
SCORING_BODY: dict[str, Any] = {
    "policy": "strict",
    "selection": {"batch_id": "4", "submitted_from": "2026-03-01T00:00:00Z"},
}
SCORING: dict[str, Any] = {
    "id": "3",
    "status": "completed",
    "policy": _NEW_VERSION,
    "selection": {
        **dict.fromkeys(("ids", "label", "outcome", "policy", "custom_id", "submitted_before")),
        **SCORING_BODY["selection"],
    },
    "total": 2,
    "scored": 1,
    "present": 0,
    "skipped": 1,
    "skips": [{"reason": "spans_not_scored", "audits": 1, "example": "18"}],
    "error": None,
    "created_at": "2026-03-02T08:00:40.113087Z",
    "finished_at": "2026-03-02T08:00:40.200191Z",
}
SUBMITTED_SCORING = {
    **SCORING,
    "status": "waiting",
    **dict.fromkeys(("scored", "present", "skipped"), 0),
    "skips": [],
    "finished_at": None,
}
_FLIP = {
    "id": TRAIL["id"],
    "custom_id": TRAIL["custom_id"],
    "score_before": TRAIL["fedscore"],
    "score_after": 0.0912,
    "label_before": TRAIL["label"],
    "label_after": "faithful",
}
COMPARISON: dict[str, Any] = {
    "policy": _NEW_VERSION,
    "against": None,
    "state": "completed",
    "selected": 2,
    "compared": 1,
    "no_checkable_claims": 0,
    "unscored": 1,
    "labels": {"stay_faithful": 0, "stay_hallucinated": 0, "to_hallucinated": 0, "to_faithful": 1},
    "mean_before": TRAIL["fedscore"],
    "mean_after": 0.0912,
    "verdicts": [{"before": "contradicted", "after": "supported", "claims": 1}],
    "to_hallucinated": [],
    "to_faithful": [_FLIP],
    "largest_shifts": [_FLIP],
}
WEBHOOK_BODY = {"url": "https://hooks.example.org/halldetect"}
_WEBHOOK = {"id": "2", **WEBHOOK_BODY, "created_at": "2026-03-01T20:58:11.004377Z"}
_32_BYTES = "YW4gZXhhbXBsZSBvZiAzMiBieXRlczogbm9TZWNyZXQ="
NEW_WEBHOOK = {**_WEBHOOK, "secret": f"whsec_{_32_BYTES}"}
WEBHOOK_PAGE = {
    "items": [
        {
            **_WEBHOOK,
            "deliveries": [
                {
                    "id": "msg_2e32bffa072a4d3c941c22755ccadbe1",
                    "batch_id": BATCH["id"],
                    "state": "due",
                    "attempts": 2,
                    "next_attempt_at": "2026-03-01T21:31:02.713200Z",
                    "last_attempt_at": "2026-03-01T21:30:01.120045Z",
                    "last_status": 503,
                    "last_error": "it answered 503",
                    "finished_at": None,
                }
            ],
        }
    ],
    "next_cursor": None,
}
HEALTH = {"status": "ok"}
READINESS = {"status": "ready", "warnings": []}


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
NOT_READY = _problem(
    503,
    Kind.NOT_READY,
    "broker: Redis does not answer at REDIS_URL; the log of the API says more",
    missing=["broker"],
)
