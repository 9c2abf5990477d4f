"""What is told of the service itself, and to whom."""

from __future__ import annotations

from api.examples.audits import BATCH

WEBHOOK_BODY = {"url": "https://hooks.example.org/halldetect"}
_WEBHOOK = {"id": "2", **WEBHOOK_BODY, "created_at": "2026-03-01T20:58:11.004377Z"}
_32_BYTES = "YW4gZXhhbXBsZSBvZiAzMiBieXRlczogbm9TZWNyZXQ="
NEW_WEBHOOK = {**_WEBHOOK, "secret": f"whsec_{_32_BYTES}"}
ROTATION_BODY = {"overlap_seconds": 86400}
NEW_SECRET = {
    "id": _WEBHOOK["id"],
    "secret": NEW_WEBHOOK["secret"],
    "older_secrets_until": "2026-03-03T09:12:40.551832Z",
}
WEBHOOK_PAGE = {
    "items": [
        {
            **_WEBHOOK,
            "older_secrets_until": None,
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
