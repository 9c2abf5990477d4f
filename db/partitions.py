"""Monthly partitions of the probabilities, made before they are needed."""

from __future__ import annotations

from datetime import date

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.base import SCHEMA

# Creating a partition takes a lock that two sessions must not take in opposite orders.
_LOCK = 0x48414C50


def ensure_partitions(session: Session, first: date, months: int) -> None:
    """Create the partitions of `months` months from that of `first` on, where they are missing."""
    year, month = first.year, first.month
    for _ in range(months):
        start = date(year, month, 1)
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        _ensure(session, start, date(year, month, 1))


def ensure_current_partitions(session: Session, months: int = 3) -> None:
    """Create the partitions of this month, by the database's clock, and the following ones."""
    today = session.scalars(text("SELECT CAST(now() AT TIME ZONE 'UTC' AS date)")).one()
    ensure_partitions(session, today, months)


def partition_name(month: date) -> str:
    """Return the name of the partition of a month, without its schema."""
    return f"probabilities_{month:%Y_%m}"


def _ensure(session: Session, start: date, end: date) -> None:
    name = partition_name(start)
    exists = text("SELECT to_regclass(:name) IS NOT NULL")
    if session.scalar(exists, {"name": f"{SCHEMA}.{name}"}):
        return
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    # Dates and a name made of digits: nothing of a caller's is in this text.
    session.execute(
        text(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{name} PARTITION OF {SCHEMA}.probabilities"
            f" FOR VALUES FROM ('{start}') TO ('{end}')"
        )
    )
