"""The driver's own connection under a session, for what SQLAlchemy has no words for."""

from __future__ import annotations

from typing import Any, cast

from psycopg import Connection
from sqlalchemy.orm import Session


def driver_connection(session: Session) -> Connection[Any]:
    """Return the psycopg connection that the session's transaction runs on."""
    connection = session.connection().connection.driver_connection
    if connection is None:
        raise RuntimeError("the session's connection is closed")
    return cast("Connection[Any]", connection)
