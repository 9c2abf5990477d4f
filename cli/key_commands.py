"""The command line of `halldetect keys`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from cli.options import LARGEST_ID
from cli.time_spans import time_span
from db.scopes import Scope

_JsonOption = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]

keys = typer.Typer(
    no_args_is_help=True,
    help="Make, list, rotate and revoke API keys, in the database: DATABASE_URL, or the running "
    "stack's. For instance: halldetect keys create night-run --scope submit --scope read",
)


@keys.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, or what for.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            "--scope", help="What it may be used for; several times for several. admin is all."
        ),
    ],
    as_json: _JsonOption = False,
) -> int:
    """Make a key and print its secret: this once, and never again."""
    from cli import keys_command
    from halldetect.settings import load_settings

    return keys_command.create(name, scope, load_settings(), as_json=as_json)


@keys.command("list")
def list_all(as_json: _JsonOption = False) -> int:
    """List the keys, revoked ones too, and when each was last used."""
    from cli import keys_command
    from halldetect.settings import load_settings

    return keys_command.show(load_settings(), as_json=as_json)


_KeyArgument = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="Number of the key.")
]


@keys.command()
def rotate(
    key: _KeyArgument,
    overlap: Annotated[
        timedelta,
        typer.Option(
            metavar="SPAN",
            parser=time_span,
            help="How long the secret that it had is accepted beside the new one: 24h, 30m, 7d; "
            "0 for no longer, when somebody else knows it.",
        ),
    ] = "24h",  # type: ignore[assignment]
    as_json: _JsonOption = False,
) -> int:
    """Give a key a new secret and print it, this once. It keeps its scopes and what is its own."""
    from cli import keys_command
    from halldetect.settings import load_settings

    return keys_command.rotate(key, overlap, load_settings(), as_json=as_json)


@keys.command()
def revoke(
    key: _KeyArgument,
    as_json: _JsonOption = False,
) -> int:
    """Let a key be accepted no longer. What was submitted with it stays, for admin keys to see."""
    from cli import keys_command
    from halldetect.settings import load_settings

    return keys_command.revoke(key, load_settings(), as_json=as_json)
