"""Connections: how they are made, shared, and what their loss is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError
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
# COPY runs on the driver itself, whose errors SQLAlchemy does not wrap.
_SERVER_LOST = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    PoolTimeout,  # every connection is in use
)


class DatabaseUnavailable(UnavailableError):
    """Postgres cannot be reached, or went away; what was begun was not committed."""


def make_engine(url: str, *, pool_size: int = 5, lock_seconds: int = 0) -> Engine:
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
        pool_timeout=_POOL_SECONDS,
        pool_pre_ping=True,
        # They are texts under audit, and would be quoted in errors and so in logs.
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "halldetect",
            "options": f"-c timezone=UTC -c lock_timeout={lock_seconds}s",
            **_TRANSPORT,
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


def wait_for_locks(session: Session) -> None:
    """Let a transaction wait for locks as long as it takes, whatever its engine says."""
    session.execute(text("SET LOCAL lock_timeout = 0"))


@contextmanager
def translated() -> Iterator[None]:
    """Raise the loss of the server as `DatabaseUnavailable`, whatever statement met it.

    Raises
    ------
    DatabaseUnavailable
        With the driver's first line, which names no password.
    """
    try:
        yield
    except _SERVER_LOST as error:
        reason = str(getattr(error, "orig", error)).strip().split("\n")[0] or "connection lost"
        raise DatabaseUnavailable(f"the database cannot be used: {reason}") from error
