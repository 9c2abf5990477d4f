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

import redis
from psycopg import ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict

from cli.database import database_address, redis_address
from cli.printed_addresses import copy_of
from cli.stack.errors import StackError
from cli.stack.postgres import programs_folder
from cli.stack.run_file import RunningStack, read_running_stack
from db.engine import make_engine
from halldetect.errors import InputError
from halldetect.settings import Settings

_EXIT_DONE = 0


def print_environment(settings: Settings) -> int:
    """Print the addresses of the servers as ``export`` lines, passwords included: all or nothing.

    Parameters
    ----------
    settings : Settings
        The addresses, or the home of the running stack whose addresses they are.

    Raises
    ------
    UnavailableError
        An address is missing, and no stack runs.
    InputError
        An address is none, or they are of two services.
    """
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in _variables(settings)]
    sys.stdout.writelines(lines)
    return _EXIT_DONE


def _variables(settings: Settings) -> Iterator[tuple[str, str]]:
    database_url, redis_url = database_address(settings), redis_address(settings)
    _check_redis_address(redis_url)
    yield "DATABASE_URL", database_url
    yield "REDIS_URL", redis_url
    yield from _libpq_variables(database_url)
    with suppress(StackError):  # without the wheel, they are wherever they were installed
        # In front: programs that are older than the server refuse to dump it.
        yield "PATH", os.pathsep.join((str(programs_folder()), os.environ.get("PATH", os.defpath)))
    stack = read_running_stack(settings.home)
    if stack is not None and (stack.database_url, stack.redis_url) == (database_url, redis_url):
        yield from _stack_variables(stack, settings)


def _stack_variables(stack: RunningStack, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what is the stack's alone, and which addresses are known from it and not set."""
    yield "HALLDETECT_HOME", str(stack.home)
    if settings.database_url is None:
        yield copy_of("DATABASE_URL"), stack.database_url
    if settings.redis_url is None:
        yield copy_of("REDIS_URL"), stack.redis_url
    flower = urlsplit(stack.flower_url)
    credentials, _, place = flower.netloc.rpartition("@")
    yield "FLOWER_BASIC_AUTH", credentials
    yield "FLOWER_URL", urlunsplit(flower._replace(netloc=place))


def _check_redis_address(url: str) -> None:
    try:
        redis.Redis.from_url(url).close()
    except ValueError:
        raise InputError(
            "REDIS_URL is no address of Redis: write redis://:password@host:port/0"
        ) from None


def _libpq_variables(database_url: str) -> Iterator[tuple[str, str]]:
    make_engine(database_url).dispose()  # which refuses what is no address
    names = {option.keyword: option.envvar for option in pq.Conninfo.get_defaults()}
    uri = f"postgresql://{database_url.partition('://')[2]}"  # a driver's name is not libpq's
    try:
        given = conninfo_to_dict(uri)
    except ProgrammingError as error:
        reason = str(error).strip().replace(uri, "...")  # it has the password
        raise InputError(f"DATABASE_URL is no address of Postgres: {reason}") from None
    for keyword, value in given.items():
        variable = names.get(keyword.encode())
        if variable is not None and value is not None:
            yield variable.decode(), str(value)
