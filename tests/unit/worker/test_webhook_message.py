"""Messages and their signatures, against a published example and the check in the documentation."""

from __future__ import annotations

import base64
import json
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from db.batches import BatchState
from db.webhook_deliveries import ClaimedDelivery
from worker.webhook_message import batch_finished, signature

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"
SECRET = bytes(range(32))
SENT_AT = datetime(2026, 3, 1, 21, 14, 6, 700_000, tzinfo=UTC)
CLAIMED = ClaimedDelivery(
    id=1,
    webhook_id=2,
    batch_id=4,
    message_id=uuid.UUID("2e32bffa-072a-4d3c-941c-22755ccadbe1"),
    attempt=1,
    sent_at=SENT_AT,
    url="https://hooks.example.org/secret-path",
    secrets=(SECRET,),
    owner=0,
)
FINISHED = BatchState(
    id=4,
    created_at=datetime(2026, 3, 1, 21, 14, 3, 120_456, tzinfo=UTC),
    cancelled_at=None,
    finished_at=datetime(2026, 3, 1, 21, 14, 6, 13_977, tzinfo=UTC),
    total=2,
    **dict.fromkeys(("queued", "extracted", "failed", "cancelled", "running"), 0),
    completed=2,
    hallucinated=1,
    faithful=1,
    **dict.fromkeys(("no_checkable_claims", "supported", "contradicted", "unsupported"), 0),
)


def test_the_published_example_of_standard_webhooks():
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(
        secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_holds_ids_times_and_counts():
    message = batch_finished(CLAIMED, FINISHED)
    assert json.loads(message.body) == {
        "type": "batch.finished",
        "timestamp": "2026-03-01T21:14:06.013977Z",
        "data": {
            "id": "4",
            "status": "completed",
            "created_at": "2026-03-01T21:14:03.120456Z",
            "cancelled_at": None,
            "finished_at": "2026-03-01T21:14:06.013977Z",
            "total": 2,
            "completed": 2,
            "hallucinated": 1,
            "faithful": 1,
            **dict.fromkeys(("waiting", "queued", "extracted", "running", "failed"), 0),
            **dict.fromkeys(("cancelled", "no_checkable_claims"), 0),
            **dict.fromkeys(("supported", "contradicted", "unsupported"), 0),
        },
    }
    assert message.headers["webhook-id"] == "msg_2e32bffa072a4d3c941c22755ccadbe1"
    assert message.headers["webhook-timestamp"] == str(int(SENT_AT.timestamp()))
    assert message.headers["Content-Type"] == "application/json"


@pytest.fixture
def documented_check():
    """The receiver's check as docs/operations.md gives it."""
    section = OPERATIONS.read_text(encoding="utf-8").partition("\n## Webhooks\n")[2]
    namespace = {}
    exec(re.search(r"^```python\n(.*?)^```$", section, flags=re.M | re.S)[1], namespace)
    return namespace["is_genuine"]


def test_the_documented_check_accepts_what_is_sent_and_nothing_else(documented_check):
    message = batch_finished(CLAIMED, FINISHED)
    secret = "whsec_" + base64.b64encode(SECRET).decode()
    now = SENT_AT.timestamp()
    assert documented_check(secret, message.headers, message.body, now + 200)
    assert documented_check(secret, message.headers, message.body, now - 200)
    other = "whsec_" + base64.b64encode(bytes(32)).decode()
    assert not documented_check(other, message.headers, message.body, now)
    assert not documented_check(secret, message.headers, message.body + b" ", now)
    assert not documented_check(secret, message.headers, message.body, now + 400)
    assert not documented_check(secret, message.headers, message.body, now - 400)
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        changed = {**message.headers, name: message.headers[name] + "1"}
        assert not documented_check(secret, changed, message.body, now), name
    rotated = {**message.headers}
    rotated["webhook-signature"] = f"v1,AAAA {message.headers['webhook-signature']}"
    assert documented_check(secret, rotated, message.body, now)


def test_secrets_do_not_show():
    assert "secret" not in repr(CLAIMED)
