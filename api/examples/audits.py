"""Records, audits and batches; the trail is that of an audit that was run."""

from __future__ import annotations

import json
from typing import Any

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
