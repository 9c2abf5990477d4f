"""The command line of `halldetect keys`."""

from __future__ import annotations

from typing import Annotated

import typer

from db.scopes import Scope

_LARGEST_ID = 2**63 - 1
_JsonOption = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]

keys = typer.Typer(
    no_args_is_help=True,
    help="Make, list and revoke API keys, in the database: DATABASE_URL, or the running stack's. "
    "For instance: halldetect keys create night-run --scope submit --scope read",
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


@keys.command()
def revoke(
    key: Annotated[
        int, typer.Argument(metavar="ID", min=1, max=_LARGEST_ID, help="Number of the key.")
    ],
    as_json: _JsonOption = False,
) -> int:
    """Let a key be accepted no longer. What was submitted with it stays, for admin keys to see."""
    from cli import keys_command
    from halldetect.settings import load_settings

    return keys_command.revoke(key, load_settings(), as_json=as_json)
