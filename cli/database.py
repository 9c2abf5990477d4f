"""The database that administration works on: the one that is set, or the running stack's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from cli.stack.run_file import read_running_stack
from db.engine import make_engine, translated
from db.migrate import current_revision
from db.schema_version import version_fault
from halldetect.errors import InputError, UnavailableError
from halldetect.settings import Settings


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
            "no database: set DATABASE_URL to postgresql://user:password@host:port/name, or start "
            "the embedded stack with `halldetect up`"
        )
    return running.database_url


def redis_address(settings: Settings) -> str:
    """Return the address of Redis: the one that is set, or the running stack's.

    Raises
    ------
    UnavailableError
        There is none.
    """
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    running = read_running_stack(settings.home)
    if running is None:
        raise UnavailableError(
            "no Redis: set REDIS_URL to redis://:password@host:port/0, or start the embedded stack "
            "with `halldetect up`"
        )
    return running.redis_url


def _check_revision(engine: Engine) -> None:
    fault = version_fault(current_revision(engine))
    if fault is not None:
        raise InputError(fault)
