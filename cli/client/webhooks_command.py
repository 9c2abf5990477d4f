"""`halldetect webhooks`: make, list, rotate and delete webhooks, through the API."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cli.client.answers import Answer, read_answer
from cli.client.service import Service
from cli.client.webhook_lines import webhook_lines
from cli.consoles import results_console, tell
from cli.moments import moment_text
from halldetect.settings import Settings

_EXIT_DONE = 0
_read = partial(read_answer, about="webhooks")


class _NewSecret(Answer):
    id: str
    secret: str


class _RotatedSecret(_NewSecret):
    older_secrets_until: datetime


def add(url: str, settings: Settings, *, as_json: bool) -> int:
    """Make a webhook and print its secret, alone on standard output; it is never shown again.

    Raises
    ------
    InputError
        The service refuses to call this address.
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        document = service.create_webhook(url)
    webhook = _read(_NewSecret, document)
    told = f"webhook {webhook.id} is called for every batch from the next one on"
    return _hand_over(document, webhook.secret, told, as_json=as_json)


def rotate(webhook_id: int, overlap: timedelta, settings: Settings, *, as_json: bool) -> int:
    """Replace a webhook's secret and print the new one, alone on standard output.

    Raises
    ------
    InputError
        There is no such webhook, or it was rotated too often.
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        document = service.rotate_webhook(webhook_id, int(overlap.total_seconds()))
    rotated = _read(_RotatedSecret, document)
    until = f"until {moment_text(rotated.older_secrets_until)}, too" if overlap else "no longer"
    told = f"webhook {webhook_id} has a new secret; what it had before signs {until}"
    return _hand_over(document, rotated.secret, told, as_json=as_json)


def show(settings: Settings, *, as_json: bool) -> int:
    """Print all webhooks with their last deliveries.

    Raises
    ------
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        webhooks = service.webhooks()
        if as_json:
            _print_json({"items": list(webhooks)})
            return _EXIT_DONE
        console = results_console()
        has_any = False
        for webhook in webhooks:
            has_any = True
            for line in webhook_lines(webhook):
                console.print(line, soft_wrap=True)
        if not has_any:
            console.print("there are no webhooks; `halldetect webhooks add` makes one")
    return _EXIT_DONE


def remove(webhook_id: int, settings: Settings) -> int:
    """Delete a webhook.

    Raises
    ------
    InputError
        There is no such webhook.
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        service.delete_webhook(webhook_id)
    results_console().print(f"webhook {webhook_id} is deleted")
    return _EXIT_DONE


def _hand_over(document: dict[str, Any], secret: str, told: str, *, as_json: bool) -> int:
    """Print an answer that holds a secret."""
    if as_json:
        _print_json(document)
        return _EXIT_DONE
    sys.stdout.write(f"{secret}\n")
    sys.stdout.flush()
    tell(f"{told}; its secret is not shown again")
    return _EXIT_DONE


def _print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
