"""What a prune would delete: chosen once, counted, and kept until it is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from sqlalchemy import Connection, text

from db.partitions import partition_name


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What a prune would delete.

    Parameters
    ----------
    before : date
        Start of the day, in UTC.
    audits, claims, scorings, probability_rows, documents, batches, idempotency_keys : int
        Rows that go. Documents go when no audit refers to them any more, Idempotency-Keys when
        their first request came before the date.
    partitions : tuple of str
        Tables of probabilities that are dropped whole.
    dropped_bytes : int
        Size of those tables, given back to the file system.
    freed_bytes : int
        About what the other rows take, free for new rows of the same tables.
    kept_audits : int
        Audits that finished before the date and stay, because their batch finished later or has
        not finished.
    """

    before: date
    audits: int
    claims: int
    scorings: int
    probability_rows: int
    documents: int
    batches: int
    idempotency_keys: int
    partitions: tuple[str, ...]
    dropped_bytes: int
    freed_bytes: int
    kept_audits: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing would go."""
        return not (self.audits or self.documents or self.idempotency_keys or self.partitions)


def midnight(day: date) -> datetime:
    """Return the start of a day, in UTC."""
    return datetime.combine(day, time(), UTC)


def choose_audits(connection: Connection, before: date) -> None:
    """Write the audits that go into the temporary table ``chosen``.

    Nothing is added to a batch, and an audit that has finished stays finished unless it failed and
    is retried: the deletion looks again, so the table may be kept for long.
    """
    connection.execute(_CHOSEN_TABLE)
    connection.execute(_CHOOSE, {"before": midnight(before)})
    connection.execute(text("CREATE INDEX ON chosen (month)"))
    connection.execute(text("ANALYZE chosen"))


def months_to_drop(connection: Connection, before: date) -> list[date]:
    """Return the months of probabilities that lie before the date and keep no audit."""
    kept = set(connection.scalars(_KEPT_MONTHS))
    months = [
        datetime.strptime(name[-7:], "%Y_%m").date() for name in connection.scalars(_PARTITIONS)
    ]
    this_month = before.replace(day=1)
    return sorted(month for month in months if month < this_month and month not in kept)


def plan_prune(connection: Connection, before: date, whole_months: list[date]) -> PrunePlan:
    """Count what goes with the chosen audits.

    Parameters
    ----------
    whole_months : list of date
        `months_to_drop`.
    """
    names = [partition_name(month) for month in whole_months]
    values = {"before": midnight(before), "months": whole_months}
    counts = connection.execute(_COUNTS, values).one()
    sizes = connection.execute(_SIZES, {"dropped": names}).one()
    shares = [
        (sizes.audits, counts.audits, counts.all_audits),
        (sizes.claims, counts.claims, counts.all_claims),
        (sizes.scorings, counts.scorings, counts.all_scorings),
        (sizes.documents, counts.documents, counts.all_documents),
        (sizes.probabilities, counts.single_probability_rows, counts.kept_months_rows),
    ]
    return PrunePlan(
        before=before,
        audits=counts.audits,
        claims=counts.claims,
        scorings=counts.scorings,
        probability_rows=counts.whole_months_rows + counts.single_probability_rows,
        documents=counts.documents,
        batches=counts.batches,
        idempotency_keys=counts.idempotency_keys,
        partitions=tuple(names),
        dropped_bytes=int(sizes.dropped),
        freed_bytes=round(sum(int(size) * part / max(whole, 1) for size, part, whole in shares)),
        kept_audits=counts.kept_audits,
    )


_CHOSEN_TABLE = text(
    "CREATE TEMPORARY TABLE chosen (id bigint PRIMARY KEY, batch_id bigint, month date NOT NULL)"
)
_CHOOSE = text(
    """
    INSERT INTO chosen
    SELECT id, batch_id, month FROM halldetect.audits
    WHERE finished_at < :before AND (batch_id IS NULL OR batch_id IN (
        SELECT batch_id FROM halldetect.audits WHERE batch_id IS NOT NULL GROUP BY batch_id
        HAVING bool_and(coalesce(finished_at < :before, false))
    ))
    """
)
_PARTITIONS = text(
    """
    SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = CAST('halldetect.probabilities' AS regclass)
    """
)
_KEPT_MONTHS = text(
    """
    SELECT DISTINCT month FROM halldetect.audits AS a
    WHERE NOT EXISTS (SELECT FROM chosen WHERE chosen.id = a.id)
    """
)
_COUNTS = text(
    """
    SELECT
        (SELECT count(*) FROM chosen) AS audits,
        (SELECT count(*) FROM halldetect.audits) AS all_audits,
        (SELECT count(*) FROM halldetect.audits WHERE finished_at < :before)
            - (SELECT count(*) FROM chosen) AS kept_audits,
        (SELECT count(DISTINCT batch_id) FROM chosen) AS batches,
        (SELECT count(*) FROM halldetect.claims JOIN chosen ON chosen.id = audit_id) AS claims,
        (SELECT count(*) FROM halldetect.claims) AS all_claims,
        (SELECT count(*) FROM halldetect.scorings JOIN chosen ON chosen.id = audit_id) AS scorings,
        (SELECT count(*) FROM halldetect.scorings) AS all_scorings,
        (SELECT count(*) FROM halldetect.documents AS d WHERE NOT EXISTS (
            SELECT FROM halldetect.audits AS a WHERE a.document_id = d.id
            AND NOT EXISTS (SELECT FROM chosen WHERE chosen.id = a.id)
        )) AS documents,
        (SELECT count(*) FROM halldetect.documents) AS all_documents,
        (SELECT count(*) FROM halldetect.idempotency_keys
            WHERE created_at < :before) AS idempotency_keys,
        (SELECT count(*) FROM halldetect.probabilities
            WHERE month = ANY(CAST(:months AS date[]))) AS whole_months_rows,
        (SELECT count(*) FROM halldetect.probabilities
            WHERE month <> ALL(CAST(:months AS date[]))) AS kept_months_rows,
        (SELECT count(*) FROM halldetect.probabilities AS p
            JOIN chosen ON chosen.id = p.audit_id AND chosen.month = p.month
            WHERE p.month <> ALL(CAST(:months AS date[]))) AS single_probability_rows
    """
)
# Extractions and verifications are one a completed audit, span tables about one a document.
_SIZES = text(
    """
    SELECT
        pg_total_relation_size('halldetect.audits') + pg_total_relation_size('halldetect.batches')
            + pg_total_relation_size('halldetect.extractions')
            + pg_total_relation_size('halldetect.verifications') AS audits,
        pg_total_relation_size('halldetect.claims') AS claims,
        pg_total_relation_size('halldetect.scorings') AS scorings,
        pg_total_relation_size('halldetect.documents')
            + pg_total_relation_size('halldetect.span_tables') AS documents,
        coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE relname = ANY(:dropped)), 0)
            AS dropped,
        coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE relname <> ALL(:dropped)), 0)
            AS probabilities
    FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
    WHERE inhparent = CAST('halldetect.probabilities' AS regclass)
    """
)
