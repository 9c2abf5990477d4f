"""`halldetect env`: what leads other programs to the service's servers, for a shell to evaluate.

Postgres's own programs take passwords from variables; as arguments, every user would see them.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

from psycopg import ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict

from cli.database import database_address, redis_address
from cli.stack.errors import StackError
from cli.stack.postgres import programs_folder
from cli.stack.run_file import read_running_stack
from halldetect.errors import InputError
from halldetect.settings import Settings

_EXIT_DONE = 0


def print_environment(settings: Settings) -> int:
    """Print the addresses of the servers as ``export`` lines, passwords included.

    Parameters
    ----------
    settings : Settings
        The addresses, or the home of the running stack whose addresses they are.

    Raises
    ------
    UnavailableError
        No address is set, and no stack runs.
    """
    for name, value in _variables(settings):
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    return _EXIT_DONE


def _variables(settings: Settings) -> Iterator[tuple[str, str]]:
    database_url = database_address(settings)
    yield "DATABASE_URL", database_url
    yield "REDIS_URL", redis_address(settings)
    yield from _libpq_variables(database_url)
    with suppress(StackError):  # without the wheel, they are wherever they were installed
        # In front: programs that are older than the server refuse to dump it.
        yield "PATH", os.pathsep.join((str(programs_folder()), os.environ.get("PATH", os.defpath)))
    stack = read_running_stack(settings.home)
    if stack is not None:
        flower = urlsplit(stack.flower_url)
        credentials, _, place = flower.netloc.rpartition("@")
        yield "HALLDETECT_HOME", str(stack.home)
        yield "FLOWER_BASIC_AUTH", credentials
        yield "FLOWER_URL", urlunsplit(flower._replace(netloc=place))


def _libpq_variables(database_url: str) -> Iterator[tuple[str, str]]:
    names = {option.keyword: option.envvar for option in pq.Conninfo.get_defaults()}
    try:
        given = conninfo_to_dict(database_url)
    except ProgrammingError as error:
        reason = str(error).strip()
        raise InputError(f"DATABASE_URL is no address of Postgres: {reason}") from None
    for keyword, value in given.items():
        variable = names.get(keyword.encode())
        if variable is not None and value is not None:
            yield variable.decode(), str(value)
