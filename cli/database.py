"""The database that administration works on: the one that is set, or the running stack's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr
from sqlalchemy import Engine

from cli.stack.run_file import RunningStack, read_running_stack
from db.engine import make_engine, translated
from db.migrate import current_revision
from db.schema_version import version_fault
from halldetect.errors import InputError, UnavailableError
from halldetect.settings import Settings

_PRINTED = " (what `halldetect env` printed of an embedded stack does not count)"


@contextmanager
def open_database(settings: Settings) -> Iterator[Engine]:
    """Connect to the database, and disconnect at the end.

    Raises
    ------
    UnavailableError
        There is none, or it cannot be reached or goes away.
    InputError
        Its tables are not those of this version.
    """
    with connect_database(settings) as engine:
        _check_revision(engine)
        yield engine


@contextmanager
def connect_database(settings: Settings) -> Iterator[Engine]:
    """Connect to the database, whatever its tables are, and disconnect at the end.

    Raises
    ------
    UnavailableError
        There is none, or it cannot be reached or goes away.
    """
    engine = make_engine(database_address(settings))
    try:
        with translated():
            yield engine
    finally:
        engine.dispose()


def database_address(settings: Settings) -> str:
    """Return the address of Postgres: the one that is set, or the running stack's.

    Raises
    ------
    UnavailableError
        There is none.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    running = read_running_stack(settings.home)
    if running is None:
        raise UnavailableError(
            f"no database: no stack runs in {settings.home}; start it with `halldetect up`, or set "
            f"DATABASE_URL to postgresql://user:password@host:port/name{_PRINTED}"
        )
    return running.database_url


def redis_address(settings: Settings) -> str:
    """Return the address of Redis that belongs to the database of `database_address`.

    Raises
    ------
    UnavailableError
        There is none.
    InputError
        One address is set, and the other one would be of the running stack, another service.
    """
    database_url, redis_url = settings.database_url, settings.redis_url
    if database_url is not None and redis_url is not None:
        return redis_url.get_secret_value()
    running = read_running_stack(settings.home)
    if running is not None:
        _refuse_half("DATABASE_URL", database_url, running.database_url, running)
        _refuse_half("REDIS_URL", redis_url, running.redis_url, running)
        return running.redis_url
    if redis_url is not None:
        return redis_url.get_secret_value()
    raise UnavailableError(
        f"no Redis: no stack runs in {settings.home}; start it with `halldetect up`, or set "
        f"REDIS_URL to redis://:password@host:port/0{_PRINTED}"
    )


def _refuse_half(name: str, given: SecretStr | None, stacks: str, running: RunningStack) -> None:
    if given is not None and given.get_secret_value() != stacks:
        raise InputError(
            f"{name} names another service than the stack that runs in {running.home}: set both "
            "DATABASE_URL and REDIS_URL, or neither"
        )


def _check_revision(engine: Engine) -> None:
    fault = version_fault(current_revision(engine))
    if fault is not None:
        raise InputError(fault)
