"""What a receiver gets: one small JSON object, signed after the Standard Webhooks specification.

https://www.standardwebhooks.com: receivers check it with a library that exists already.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from importlib.metadata import version

from pydantic_core import to_json

from db.batches import BatchState
from db.webhook_deliveries import ClaimedDelivery

BATCH_FINISHED = "batch.finished"


@dataclass(frozen=True, slots=True)
class Message:
    """A request's headers and body."""

    headers: dict[str, str]
    body: bytes


def batch_finished(claimed: ClaimedDelivery, batch: BatchState) -> Message:
    """Return the message that a batch is finished: ids, times and counts, and no text of anybody's.

    Parameters
    ----------
    claimed : ClaimedDelivery
        Its id and the time of this attempt.
    batch : BatchState
        A batch of which nothing waits.
    """
    body = to_json(
        {"type": BATCH_FINISHED, "timestamp": batch.finished_at, "data": batch.document()}
    )
    message_id = f"msg_{claimed.message_id.hex}"
    timestamp = str(int(claimed.sent_at.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"halldetect/{version('halldetect')}",
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(
            signature(secret, message_id, timestamp, body) for secret in claimed.secrets
        ),
    }
    return Message(headers, body)


def signature(secret: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """Sign a message: ``v1,`` and the base64 form of an HMAC-SHA256."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
