"""Partitions are there before they are needed, whoever asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date

from sqlalchemy import text

from db.partitions import ensure_current_partitions, ensure_partitions


def partitions(sessions):
    with sessions.begin() as session:
        return list(
            session.scalars(
                text(
                    "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1"
                )
            )
        )


def test_months_are_created_over_the_end_of_a_year(sessions):
    for _ in range(2):
        with sessions.begin() as session:
            ensure_partitions(session, date(2031, 11, 30), 3)
    assert partitions(sessions) == [
        "probabilities_2031_11",
        "probabilities_2031_12",
        "probabilities_2032_01",
    ]


def test_many_may_ask_at_once(sessions):
    def ask(_):
        with sessions.begin() as session:
            ensure_current_partitions(session, months=4)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(ask, range(10)))
    assert len(partitions(sessions)) == 4
