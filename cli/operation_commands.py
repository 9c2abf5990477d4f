"""Commands for whoever keeps the service running: failures, a check-up, ways to the servers."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import LARGEST_ID
from halldetect.errors import InputError

_BatchOption = Annotated[
    int | None,
    typer.Option("--batch", metavar="B", min=1, max=LARGEST_ID, help="Those of this batch."),
]


def add_operation_commands(app: typer.Typer) -> None:
    """Make them commands of `app`."""
    for command in (failed, retry, doctor, env):
        app.command()(command)


def failed(
    batch: _BatchOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            max=LARGEST_ID,
            help="Most audits listed: by default 100, as JSON all.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> int:
    """List the audits that failed, newest first, with the reasons."""
    from cli.client.failed_command import list_failed
    from halldetect.settings import load_settings

    return list_failed(batch, load_settings(), limit=limit, as_json=as_json)


def retry(
    audits: Annotated[
        list[int] | None,
        typer.Argument(metavar="AUDIT...", min=1, max=LARGEST_ID, help="Numbers of audits."),
    ] = None,
    batch: _BatchOption = None,
) -> int:
    """Put failed audits back into the line: these, or all of a batch.

    Claims that were extracted are kept. Exit code 2 if any of the audits had not failed.
    """
    if bool(audits) == (batch is not None):
        raise InputError("give the numbers of failed audits, or --batch B")
    from cli.client.retry_command import retry_audits, retry_failed_of
    from halldetect.settings import load_settings

    if batch is not None:
        return retry_failed_of(batch, load_settings())
    return retry_audits(audits or [], load_settings())


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Check that what is stored is whole and that the work goes on; nothing is changed.

    Exit codes: 0 all is well, 1 something is wrong, with what to do about it.
    """
    from cli.doctor_command import examine
    from halldetect.settings import load_settings

    return examine(load_settings(), as_json=as_json)


def env() -> int:
    """Print the addresses of the servers as variables of a shell, passwords included.

    For `eval "$(halldetect env)"`: pg_dump, psql, celery and python -m db.migrate find them then.
    """
    from cli.environment_command import print_environment
    from halldetect.settings import load_settings

    return print_environment(load_settings())
