"""`halldetect webhooks`: make, list and delete webhooks, through the API."""

from __future__ import annotations

import json
import sys
from typing import Any

from cli.client.service import Service
from cli.client.webhook_lines import webhook_lines
from cli.consoles import results_console, tell
from halldetect.settings import Settings

_EXIT_DONE = 0


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
        webhook = service.create_webhook(url)
    if as_json:
        _print_json(webhook)
        return _EXIT_DONE
    sys.stdout.write(f"{webhook['secret']}\n")
    sys.stdout.flush()
    tell(
        f"webhook {webhook['id']} is called for every batch from the next one on; its secret is "
        "not shown again"
    )
    return _EXIT_DONE


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


def _print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
