"""Policies, reviews and scorings, of the audits of `api.examples.audits`."""

from __future__ import annotations

from typing import Any

from api.examples.audits import TRAIL

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
