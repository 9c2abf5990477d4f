"""Rows of a batch for other tools: the documented views, as one consistent and bounded stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString, cast

import psycopg
from psycopg.types import TypeInfo
from sqlalchemy import Engine

from db.batches import BatchState, batch_state
from db.driver import driver_connection
from db.engine import session_factory
from db.exported import Exported

_AUDITS_AT_A_TIME = 100
_ROWS_AT_A_TIME = 2000


# All columns of the view, in its order; for probabilities without the text of each chunk, which
# would be the source many times over and follows from its offsets.
_ROWS: dict[Exported, LiteralString] = {
    Exported.AUDITS: "SELECT * FROM trail.audits AS r WHERE r.audit_id = ANY(%s) ORDER BY r.line",
    Exported.CLAIMS: """
        SELECT r.*, a.line, a.outcome, a.score AS response_score, a.label, a.finished_at
        FROM trail.claims AS r JOIN trail.audits AS a ON a.audit_id = r.audit_id
        WHERE r.audit_id = ANY(%s) AND r.verdict IS NOT NULL ORDER BY a.line, r.position
    """,
    Exported.PROBABILITIES: """
        SELECT r.audit_id, r.claim_id, r.position, r.chunk, r.granularity, r.chunk_index,
            r.entailment, r.neutral, r.contradiction, r.source_start, r.source_end, r.spans,
            a.batch_id, a.line, a.custom_id
        FROM trail.chunk_probabilities AS r
        JOIN halldetect.audits AS a ON a.id = r.audit_id AND a.month = r.month
        WHERE r.audit_id = ANY(%s)
        ORDER BY a.line, r.position, r.granularity, r.chunk_index
    """,
}
_NEXT_AUDITS = """
    SELECT id, line FROM halldetect.audits WHERE batch_id = %s AND line > %s ORDER BY line LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """A column of an export.

    Parameters
    ----------
    name : str
        As in the view.
    type : str
        Postgres's name for what it holds: ``int8``, ``text``, ``jsonb``, ...
    is_list : bool
        Whether it holds an array of that.
    """

    name: str
    type: str
    is_list: bool


@dataclass(frozen=True, slots=True)
class ExportPage:
    """Rows of an export, and up to which line of the upload they go."""

    rows: list[tuple[Any, ...]]
    line: int


class BatchExport:
    """A batch as it stood at one moment; made by `open_export`.

    Parameters
    ----------
    batch : BatchState
        How far it was then.
    columns : tuple of ExportColumn
        Of every row.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], what: Exported, batch: BatchState
    ) -> None:
        self._connection = connection
        self._what = what
        self.batch = batch
        self.columns = self._described()

    def pages(self) -> Iterator[ExportPage]:
        """Yield the rows in the order of submission, a few at a time."""
        line = 0
        while True:
            audits = self._connection.execute(
                _NEXT_AUDITS, (self.batch.id, line, _AUDITS_AT_A_TIME)
            ).fetchall()
            if not audits:
                return
            line = audits[-1][1]
            with self._connection.cursor(name="export") as cursor:
                cursor.execute(_ROWS[self._what], ([audit_id for audit_id, _ in audits],))
                while rows := cursor.fetchmany(_ROWS_AT_A_TIME):
                    yield ExportPage(rows, line)

    def _described(self) -> tuple[ExportColumn, ...]:
        cursor = self._connection.execute(_ROWS[self._what], ([],))
        types = self._connection.adapters.types
        columns = []
        for column in cursor.description or ():
            kind = cast(TypeInfo, types.get(column.type_code))
            columns.append(ExportColumn(column.name, kind.name, kind.array_oid == column.type_code))
        return tuple(columns)


@contextmanager
def open_export(engine: Engine, what: Exported, batch_id: int) -> Iterator[BatchExport | None]:
    """Open a batch for export, or None when there is none of that id.

    All is read in one transaction that cannot write: what workers store meanwhile is not seen.
    """
    with session_factory(engine)() as session:
        session.connection(
            execution_options={"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        )
        batch = batch_state(session, batch_id)
        if batch is None:
            yield None
        else:
            yield BatchExport(driver_connection(session), what, batch)
