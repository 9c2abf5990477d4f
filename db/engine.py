"""Connections: how they are made, shared, and what their loss is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from halldetect.errors import InputError, UnavailableError

_CONNECT_SECONDS = 5
_POOL_SECONDS = 10
# A network that swallows everything is noticed by us, and not after the system's two hours.
_TRANSPORT = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# What the server says of itself: connection lost, deadlock, no resources (disk, memory,
# connections), shutdown, failure of the system. Whatever it says else is about the statement.
_OUTAGE_CLASSES = ("08", "40", "53", "57", "58")
# Of these, what may come while a commit is under way and does not say whether it took place.
_LOSS_CLASSES = ("08", "57", "58")
_READ_ONLY = "25006"
_LOCKED = "55P03"  # for longer than this engine waits
_STOOD_STILL = "25P03"  # in a transaction, for longer than this engine may
_QUERY_CANCELED = "57014"  # a time limit that this very statement may exceed each time
# Statements that name what is not there were written for other tables.
_OTHER_TABLES = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)


class DatabaseUnavailable(UnavailableError):
    """Postgres cannot be reached, or went away; what was begun was not committed."""


class CommitUnknown(DatabaseUnavailable):
    """The connection was lost during a commit: what was begun may be committed, or not."""


class SchemaMismatch(DatabaseUnavailable):
    """The tables are of another version than this program; what was begun was not committed."""


def make_engine(
    url: str, *, pool_size: int = 5, lock_seconds: int = 0, idle_seconds: int = 0
) -> Engine:
    """Return an engine whose connections are tested before use, so that a restart heals itself.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host:port/name``.
    pool_size : int
        Most connections that are open at once.
    lock_seconds : int
        How long a statement waits for another transaction's lock before it fails as if the server
        were away; 0 waits as long as it takes.
    idle_seconds : int
        How long a transaction may stand still between two statements before the server ends it,
        and with it the locks that a frozen process, or one cut off, would hold on; 0 lets it.

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
        pool_timeout=_POOL_SECONDS,
        pool_pre_ping=True,
        # They are texts under audit, and would be quoted in errors and so in logs.
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "halldetect",
            "options": (
                f"-c timezone=UTC -c lock_timeout={lock_seconds}s"
                f" -c idle_in_transaction_session_timeout={idle_seconds}s"
            ),
            **_TRANSPORT,
        },
    )
    event.listen(engine, "handle_error", _leave_read_only_server)
    return engine


def session_factory(engine: Engine) -> sessionmaker[Session]:
    """Return what opens sessions; use ``with factory.begin() as session`` for a transaction."""
    return sessionmaker(engine, expire_on_commit=False)


@contextmanager
def transaction(sessions: sessionmaker[Session]) -> Iterator[Session]:
    """Open a transaction that is committed unless an error leaves the block.

    Raises
    ------
    DatabaseUnavailable
        When the server cannot be reached, at any point.
    CommitUnknown
        When it went away during the commit.
    """
    is_committing = False
    try:
        with translated(), sessions.begin() as session:
            yield session
            is_committing = True
    except DatabaseUnavailable as error:
        if is_committing and _may_have_committed(error.__cause__):
            raise CommitUnknown(str(error)) from error
        raise


def read_one_snapshot(session: Session) -> None:
    """Let all statements of a transaction that is about to begin see the same rows, and only read.

    Must come before the transaction's first statement.
    """
    session.connection(
        execution_options={"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    )


def wait_for_locks(session: Session) -> None:
    """Let a transaction wait for locks as long as it takes, whatever its engine says."""
    session.execute(text("SET LOCAL lock_timeout = 0"))


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
    except PoolTimeout as error:  # every connection is in use
        raise DatabaseUnavailable(f"the database cannot be used: {error}") from error


def _is_outage(error: BaseException | None) -> bool:
    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if state == _QUERY_CANCELED:
        return False
    return state in (_READ_ONLY, _LOCKED, _STOOD_STILL) or str(state).startswith(_OUTAGE_CLASSES)


def _may_have_committed(error: BaseException | None) -> bool:
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state is None or str(state).startswith(_LOSS_CLASSES)


def _leave_read_only_server(context: ExceptionContext) -> None:
    """Drop all connections to a server that only reads: it was demoted, or is so by a setting.

    It would go on refusing on these connections after the new ones may write.
    """
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True
