"""Connections: how they are made, shared, and what their loss is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError, ProgrammingError
from sqlalchemy.orm import Session, sessionmaker

from halldetect.errors import InputError, UnavailableError

_CONNECT_SECONDS = 5
# COPY runs on the driver itself, whose errors SQLAlchemy does not wrap.
_SERVER_LOST = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)
# Statements that name what is not there were written for other tables.
_OTHER_TABLES = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)


class DatabaseUnavailable(UnavailableError):
    """Postgres cannot be reached, or went away; what was begun was not committed."""


class SchemaMismatch(DatabaseUnavailable):
    """The tables are of another version than this program; what was begun was not committed."""


def make_engine(url: str, *, pool_size: int = 5) -> Engine:
    """Return an engine whose connections are tested before use, so that a restart heals itself.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host:port/name``.
    pool_size : int
        Most connections that are open at once.

    Raises
    ------
    InputError
        When the address is not Postgres's.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        raise InputError(
            "DATABASE_URL is no address: write postgresql://user:password@host:port/name"
        ) from None
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise InputError(f"DATABASE_URL must be postgresql://..., not {address.drivername}://...")
    return create_engine(
        address.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        # They are texts under audit, and would be quoted in errors and so in logs.
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "halldetect",
            "options": "-c timezone=UTC",
        },
    )


def session_factory(engine: Engine) -> sessionmaker[Session]:
    """Return what opens sessions; use ``with factory.begin() as session`` for a transaction."""
    return sessionmaker(engine, expire_on_commit=False)


def read_one_snapshot(session: Session) -> None:
    """Let all statements of a transaction that is about to begin see the same rows, and only read.

    Must come before the transaction's first statement.
    """
    session.connection(
        execution_options={"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    )


@contextmanager
def translated() -> Iterator[None]:
    """Raise the loss of the server as `DatabaseUnavailable`, whatever statement met it.

    Raises
    ------
    DatabaseUnavailable
        With the driver's first line, which names no password.
    SchemaMismatch
        When a table or column is not there.
    """
    try:
        yield
    except _SERVER_LOST as error:
        reason = _first_line(error) or "connection lost"
        raise DatabaseUnavailable(f"the database cannot be used: {reason}") from error
    except (ProgrammingError, *_OTHER_TABLES) as error:
        if not isinstance(getattr(error, "orig", error), _OTHER_TABLES):
            raise
        raise SchemaMismatch(
            f"the tables are of another version than this program ({_first_line(error)}): "
            "`halldetect doctor` says of which"
        ) from error


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().split("\n")[0]
