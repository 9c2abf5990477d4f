import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError


def test_errors_do_not_quote_what_was_to_be_stored(sessions):
    with sessions() as session, pytest.raises(DBAPIError) as raised:
        session.execute(text("SELECT 1 / (length(:source) - 4)"), {"source": "text"})
    assert "division by zero" in str(raised.value)
    assert "'text'" not in str(raised.value)
