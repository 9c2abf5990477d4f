"""Webhooks and their deliveries for people to read, a line each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from cli.client.answers import Answer, read_answer
from cli.moments import moment_text
from cli.printable import printable

_read = partial(read_answer, about="webhooks")


class _Delivery(Answer):
    batch_id: str
    state: str
    attempts: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_error: str | None


class _Webhook(Answer):
    id: str
    url: str
    older_secrets_until: datetime | None
    deliveries: list[_Delivery]


def webhook_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield a line for a webhook and one for each of its deliveries.

    Raises
    ------
    ServiceError
        The document describes no webhook.
    """
    webhook = _read(_Webhook, document)
    until = webhook.older_secrets_until
    older = "" if until is None else f", signed with older secrets, too, until {moment_text(until)}"
    yield f"webhook {webhook.id}: {printable(webhook.url)}{older}"
    for delivery in webhook.deliveries:
        yield f"  batch {delivery.batch_id}: {_described(delivery)}"


def _described(delivery: _Delivery) -> str:
    words = [delivery.state]
    if delivery.last_attempt_at is not None:
        words.append(f"attempt {delivery.attempts} at {moment_text(delivery.last_attempt_at)}")
    if delivery.last_error:
        words.append(printable(delivery.last_error))
    if delivery.next_attempt_at is not None:
        words.append(f"next attempt at {moment_text(delivery.next_attempt_at)}")
    return ", ".join(words)
