"""Connections: how they are made, shared, and what their loss is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from halldetect.errors import InputError, UnavailableError

_CONNECT_SECONDS = 5
# What the server says of itself: connection lost, deadlock, no resources (disk, memory,
# connections), shutdown, failure of the system. Whatever it says else is about the statement.
_OUTAGE_CLASSES = ("08", "40", "53", "57", "58")
_READ_ONLY = "25006"
_QUERY_CANCELED = "57014"  # a time limit that this very statement may exceed each time
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
    engine = create_engine(
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
    event.listen(engine, "handle_error", _leave_read_only_server)
    return engine


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
    """Raise what is the server's fault as `DatabaseUnavailable`, whatever statement met it.

    That is its loss, and that it is full, overloaded or read-only: the same statement may succeed
    later. Errors of the statement itself pass as they are.

    Raises
    ------
    DatabaseUnavailable
        With the driver's first line, which names no password.
    SchemaMismatch
        When a table or column is not there.
    """
    try:
        yield
    except (DBAPIError, psycopg.Error) as error:  # COPY's errors come as the driver's own
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason = str(cause).strip().split("\n")[0] or "connection lost"
        if isinstance(cause, _OTHER_TABLES):
            raise SchemaMismatch(
                f"the tables are of another version than this program ({reason}): "
                "`halldetect doctor` says of which"
            ) from error
        if _is_outage(cause):
            raise DatabaseUnavailable(f"the database cannot be used: {reason}") from error
        raise


def _is_outage(error: BaseException | None) -> bool:
    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if state == _QUERY_CANCELED:
        return False
    return bool(state == _READ_ONLY or state.startswith(_OUTAGE_CLASSES))


def _leave_read_only_server(context: ExceptionContext) -> None:
    """Drop all connections to a server that only reads: it was demoted, or is so by a setting.

    It would go on refusing on these connections after the new ones may write.
    """
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True
