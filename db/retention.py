"""Retention: what finished before a date goes, and first it is said what that is.

A batch goes as a whole, when the last of its audits finished before the date. Audits are deleted
in chunks, one transaction each, so that an interruption leaves nothing inconsistent and the same
call goes on where it stopped. Months of probabilities that no audit is left in are dropped whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from psycopg.errors import LockNotAvailable
from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import OperationalError

from db.partitions import partition_name
from db.retention_plan import choose_audits, midnight, months_to_drop, plan_prune
from halldetect.errors import InputError

_LOCK = 0x48414C52
_CHUNK = 500
# Dropping a partition waits for those who read probabilities, and makes others wait behind it.
_DROP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune has deleted.

    Parameters
    ----------
    audits, documents, span_tables, idempotency_keys : int
        Rows that are gone.
    partitions : tuple of str
        Tables that are gone.
    partitions_in_use : tuple of str
        Tables that should have gone and that are still needed: somebody was reading them.
    """

    audits: int
    documents: int
    span_tables: int
    idempotency_keys: int
    partitions: tuple[str, ...]
    partitions_in_use: tuple[str, ...]


class PruneInProgress(InputError):
    """Another prune of the same database is running."""


@contextmanager
def pruning(engine: Engine, before: date) -> Iterator[Pruning]:
    """Choose what is to go; nothing is deleted until `Pruning.run`.

    Raises
    ------
    PruneInProgress
        When somebody else is at it.
    """
    with engine.connect() as connection:
        connection.detach()  # closed for good at the end, with the lock and the temporary table
        with connection.begin():
            if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK}):
                raise PruneInProgress("another prune of this database is running: let it finish")
        yield Pruning(connection, before)


class Pruning:
    """Audits chosen to go, and all that goes with them; made by `pruning`.

    Parameters
    ----------
    connection : Connection
        Used by nobody else, outside a transaction.
    before : date
        What finished before it goes.

    Attributes
    ----------
    plan : PrunePlan
        What will be deleted.
    """

    def __init__(self, connection: Connection, before: date) -> None:
        self._connection = connection
        self._before = midnight(before)
        with connection.begin():
            choose_audits(connection, before)
            self._whole_months = months_to_drop(connection, before)
            self.plan = plan_prune(connection, before, self._whole_months)

    def run(self, on_progress: Callable[[int], None] = lambda _: None) -> Pruned:
        """Delete it all.

        Parameters
        ----------
        on_progress : callable
            Called with the number of audits deleted so far; an error from it ends the run between
            two transactions.
        """
        audits = 0
        for deleted in self._delete_audits():
            audits += deleted
            on_progress(audits)
        gone = {month: self._drop_partition(month) for month in self._whole_months}
        return Pruned(
            audits=audits,
            documents=self._delete_unreferenced(_FREE_DOCUMENTS, _DELETE_DOCUMENTS),
            span_tables=self._delete_unreferenced(_FREE_SPAN_TABLES, _DELETE_SPAN_TABLES),
            idempotency_keys=self._forget_keys(),
            partitions=tuple(partition_name(month) for month in gone if gone[month]),
            partitions_in_use=tuple(partition_name(month) for month in gone if not gone[month]),
        )

    def _delete_audits(self) -> Iterator[int]:
        """Delete a chunk after the other, and yield how many audits each was."""
        after = 0
        while True:
            with self._connection.begin():
                ids = list(self._connection.scalars(_NEXT_CHUNK, {"after": after, "limit": _CHUNK}))
                if not ids:
                    return
                deleted = self._connection.execute(
                    _DELETE_AUDITS, {"ids": ids, "before": self._before}
                ).all()
                self._delete_probabilities(deleted)
                self._shrink_batches(deleted)
            after = ids[-1]
            yield len(deleted)

    def _delete_probabilities(self, deleted: Sequence[Any]) -> None:
        """Delete the rows of deleted audits where their month is not dropped whole later."""
        by_month: defaultdict[date, list[int]] = defaultdict(list)
        for audit in deleted:
            if audit.month not in self._whole_months:
                by_month[audit.month].append(audit.id)
        for month, ids in by_month.items():
            self._connection.execute(_DELETE_PROBABILITIES, {"month": month, "ids": ids})

    def _shrink_batches(self, deleted: Sequence[Any]) -> None:
        """Keep a batch's total true at every moment, and delete it with its last audit."""
        gone = Counter(audit.batch_id for audit in deleted if audit.batch_id is not None)
        for batch_id, count in gone.items():
            values = {"id": batch_id, "count": count}
            if not self._connection.execute(_SHRINK_BATCH, values).rowcount:
                self._connection.execute(_DELETE_BATCH, {"id": batch_id})

    def _forget_keys(self) -> int:
        """Forget requests so old that nobody repeats them any more."""
        with self._connection.begin():
            return self._connection.execute(_FORGET_KEYS, {"before": self._before}).rowcount

    def _drop_partition(self, month: date) -> bool:
        """Drop a month of probabilities; return False when it is still needed.

        That is when somebody is reading it for long, or when an upload that began in that month
        has been stored since: then only what no audit refers to is deleted.
        """
        try:
            with self._connection.begin():
                if self._connection.scalar(_HAS_AUDITS, {"month": month}):
                    self._connection.execute(_DELETE_ORPHANS, {"month": month})
                    return False
                self._connection.execute(text(f"SET LOCAL lock_timeout = '{_DROP_SECONDS}s'"))
                # A name made of digits: nothing of a caller's is in this text.
                self._connection.execute(
                    text(f"DROP TABLE IF EXISTS halldetect.{partition_name(month)}")
                )
        except OperationalError as error:
            if isinstance(error.orig, LockNotAvailable):
                return False
            raise
        return True

    def _delete_unreferenced(self, find: TextClause, delete: TextClause) -> int:
        """Delete rows that nothing refers to.

        They are found and locked in one statement. The statement after it sees everything that
        was committed before the lock, and nobody can begin to refer to a locked row.
        """
        total = after = 0
        while True:
            with self._connection.begin():
                ids = list(self._connection.scalars(find, {"after": after, "limit": _CHUNK}))
                if not ids:
                    return total
                total += self._connection.execute(delete, {"ids": ids}).rowcount
            after = ids[-1]


_NEXT_CHUNK = text("SELECT id FROM chosen WHERE id > :after ORDER BY id LIMIT :limit")
# Claims, extractions, verifications and scorings go by their foreign keys.
_DELETE_AUDITS = text(
    """
    DELETE FROM halldetect.audits WHERE id = ANY(:ids) AND finished_at < :before
    RETURNING id, batch_id, month
    """
)
_FORGET_KEYS = text("DELETE FROM halldetect.idempotency_keys WHERE created_at < :before")
_HAS_AUDITS = text("SELECT EXISTS (SELECT FROM halldetect.audits WHERE month = :month)")
_DELETE_ORPHANS = text(
    """
    DELETE FROM halldetect.probabilities AS p WHERE p.month = :month
        AND NOT EXISTS (SELECT FROM halldetect.audits AS a WHERE a.id = p.audit_id)
    """
)
_DELETE_PROBABILITIES = text(
    "DELETE FROM halldetect.probabilities WHERE month = :month AND audit_id = ANY(:ids)"
)
_SHRINK_BATCH = text(
    "UPDATE halldetect.batches SET total = total - :count WHERE id = :id AND total > :count"
)
_DELETE_BATCH = text("DELETE FROM halldetect.batches WHERE id = :id")
_FREE_DOCUMENTS = text(
    """
    SELECT d.id FROM halldetect.documents AS d
    WHERE d.id > :after
        AND NOT EXISTS (SELECT FROM halldetect.audits AS a WHERE a.document_id = d.id)
    ORDER BY d.id LIMIT :limit FOR UPDATE SKIP LOCKED
    """
)
_DELETE_DOCUMENTS = text(
    """
    DELETE FROM halldetect.documents AS d WHERE d.id = ANY(:ids)
        AND NOT EXISTS (SELECT FROM halldetect.audits AS a WHERE a.document_id = d.id)
    """
)
# Spans of a model that no longer runs. A document that waits for a worker keeps its spans, which
# the worker may be about to use.
_FREE_SPAN_TABLES = text(
    """
    SELECT s.id FROM halldetect.span_tables AS s
    WHERE s.id > :after
        AND NOT EXISTS (SELECT FROM halldetect.verifications AS v WHERE v.span_table_id = s.id)
        AND NOT EXISTS (SELECT FROM halldetect.audits AS a
            WHERE a.document_id = s.document_id AND a.finished_at IS NULL)
    ORDER BY s.id LIMIT :limit FOR UPDATE SKIP LOCKED
    """
)
_DELETE_SPAN_TABLES = text(
    """
    DELETE FROM halldetect.span_tables AS s WHERE s.id = ANY(:ids)
        AND NOT EXISTS (SELECT FROM halldetect.verifications AS v WHERE v.span_table_id = s.id)
    """
)
