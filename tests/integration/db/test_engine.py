import os
import socket

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from db.engine import DatabaseUnavailable, make_engine, session_factory, translated


def test_errors_do_not_quote_what_was_to_be_stored(sessions):
    with sessions() as session, pytest.raises(DBAPIError) as raised:
        session.execute(text("SELECT 1 / (length(:source) - 4)"), {"source": "text"})
    assert "division by zero" in str(raised.value)
    assert "'text'" not in str(raised.value)


def test_a_network_that_swallows_everything_is_noticed(engine):
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        with socket.socket(fileno=os.dup(driver.fileno())) as transport:
            assert transport.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
            assert transport.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


def test_a_transaction_that_stands_still_loses_its_locks_and_that_is_an_outage(database, sessions):
    engine = make_engine(database, idle_seconds=1)

    def stand_still():
        with translated(), session_factory(engine).begin() as session:
            session.execute(text("LOCK TABLE halldetect.audits"))
            with sessions.begin() as other:  # which waits for the lock
                other.execute(text("SELECT FROM halldetect.audits"))
            session.execute(text("SELECT 1"))

    with pytest.raises(DatabaseUnavailable):
        stand_still()
    engine.dispose()
