"""The command line of `halldetect webhooks`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from cli.options import LARGEST_ID
from cli.time_spans import time_span

_JsonOption = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]

_WebhookArgument = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="Number of the webhook.")
]

webhooks = typer.Typer(
    no_args_is_help=True,
    help="Have an address called whenever a batch of yours is finished. "
    "For instance: halldetect webhooks add https://hooks.example.org/halldetect",
)


@webhooks.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Whom to call: https and public.")],
    as_json: _JsonOption = False,
) -> int:
    """Make a webhook and print the secret that its messages are signed with: this once."""
    from cli.client import webhooks_command
    from halldetect.settings import load_settings

    return webhooks_command.add(url, load_settings(), as_json=as_json)


@webhooks.command("list")
def list_all(as_json: _JsonOption = False) -> int:
    """List your webhooks, and how the deliveries of the last ten batches went."""
    from cli.client import webhooks_command
    from halldetect.settings import load_settings

    return webhooks_command.show(load_settings(), as_json=as_json)


@webhooks.command()
def rotate(
    webhook: _WebhookArgument,
    overlap: Annotated[
        timedelta,
        typer.Option(
            metavar="SPAN",
            parser=time_span,
            help="How long messages are signed with the secret that it had, too: 24h, 30m, 7d; "
            "0 for no longer, when somebody else knows it.",
        ),
    ] = "24h",  # type: ignore[assignment]
    as_json: _JsonOption = False,
) -> int:
    """Give a webhook a new secret and print it, this once. No delivery is lost."""
    from cli.client import webhooks_command
    from halldetect.settings import load_settings

    return webhooks_command.rotate(webhook, overlap, load_settings(), as_json=as_json)


@webhooks.command()
def remove(webhook: _WebhookArgument) -> int:
    """Delete a webhook; what is due to it is not sent any more."""
    from cli.client import webhooks_command
    from halldetect.settings import load_settings

    return webhooks_command.remove(webhook, load_settings())
