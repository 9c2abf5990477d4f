"""Invariants of the audit trail that no constraint can hold, since they span tables.

Each check is one statement in a transaction that can only read, and sees one snapshot: it may run
while workers write. Postgres keeps what it compares on disk; here only counts and a few ids arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session, sessionmaker

from db.doctor_operation import operation_findings
from db.doctor_scores import check_scores
from db.engine import read_one_snapshot
from db.findings import Finding
from db.line import Stage
from db.models import Audit
from halldetect.trail import Status

_EXAMPLES = 5
_BY_HAND = (
    "the program writes these together or not at all, so they were changed by hand or by a fault "
    "of the server: restore a backup, or delete these audits and submit their records again"
)


@dataclass(frozen=True, slots=True)
class Invariant:
    """Something that holds for every row, as a query for the rows of which it does not.

    Parameters
    ----------
    name : str
        Short and lasting.
    violations : str
        A query whose only column is ``id``.
    problem : str
        What is wrong with these rows.
    mend : str
        What to do about them.
    """

    name: str
    violations: str
    problem: str
    mend: str = _BY_HAND


# Whose probabilities are not one row a claim, each with a cell for every span of the source.
BROKEN_MATRICES = """
    SELECT a.id FROM halldetect.audits AS a
    JOIN halldetect.extractions AS e ON e.audit_id = a.id
    JOIN halldetect.verifications AS v ON v.audit_id = a.id
    JOIN halldetect.span_tables AS s ON s.id = v.span_table_id
    LEFT JOIN (
        SELECT month, audit_id, count(*) AS rows, min(position) AS first, max(position) AS last,
            min(cardinality(entailment)) AS fewest, max(cardinality(entailment)) AS most
        FROM halldetect.probabilities GROUP BY month, audit_id
    ) AS p ON p.month = a.month AND p.audit_id = a.id
    WHERE a.status = 'completed' AND (
        coalesce(p.rows, 0) <> e.claims
        OR (e.claims > 0 AND (p.first <> 0 OR p.last <> e.claims - 1
            OR p.fewest <> cardinality(s.starts) OR p.most <> cardinality(s.starts)))
    )
"""
_CLAIMS = """
    SELECT audit_id, count(*) AS claims, max(position) AS last, count(verdict) AS judged,
        count(*) FILTER (WHERE verdict = 'supported') AS supported,
        count(*) FILTER (WHERE verdict = 'contradicted') AS contradicted,
        count(*) FILTER (WHERE verdict = 'unsupported') AS unsupported
    FROM halldetect.claims GROUP BY audit_id
"""

INVARIANTS = (
    Invariant(
        "batch_totals",
        """
        SELECT b.id FROM halldetect.batches AS b
        LEFT JOIN (
            SELECT batch_id, count(*) AS audits FROM halldetect.audits GROUP BY batch_id
        ) AS a ON a.batch_id = b.id
        WHERE b.total <> coalesce(a.audits, 0)
        """,
        "batches whose total is not the number of their audits",
        "audits were added or deleted by hand: restore a backup; or, if what is there is all that "
        "should be, UPDATE halldetect.batches SET total to the number of its audits",
    ),
    Invariant(
        "completed_parts",
        """
        SELECT a.id FROM halldetect.audits AS a
        LEFT JOIN halldetect.extractions AS e ON e.audit_id = a.id
        LEFT JOIN halldetect.verifications AS v ON v.audit_id = a.id
        WHERE a.status = 'completed' AND (e.audit_id IS NULL OR v.audit_id IS NULL)
        """,
        "completed audits without an extraction or a verification",
    ),
    Invariant(
        "extracted_parts",
        """
        SELECT a.id FROM halldetect.audits AS a
        LEFT JOIN halldetect.extractions AS e ON e.audit_id = a.id
        WHERE a.status = 'extracted' AND e.audit_id IS NULL
        """,
        "audits that wait for verification and have no extraction",
        "no worker can take them, and they block what waits behind them: UPDATE halldetect.audits "
        "SET status = 'queued', lease_owner = NULL, lease_expires_at = NULL for these ids, and "
        "DELETE their rows of halldetect.claims",
    ),
    Invariant(
        "queued_parts",
        """
        SELECT a.id FROM halldetect.audits AS a
        WHERE a.status = 'queued' AND (
            EXISTS (SELECT FROM halldetect.extractions AS e WHERE e.audit_id = a.id)
            OR EXISTS (SELECT FROM halldetect.claims AS c WHERE c.audit_id = a.id))
        """,
        "audits that wait for their claims and have some already",
        "their extraction cannot be stored a second time: DELETE their rows of "
        "halldetect.extractions and halldetect.claims",
    ),
    Invariant(
        "claims",
        f"""
        SELECT a.id FROM halldetect.audits AS a
        JOIN halldetect.extractions AS e ON e.audit_id = a.id
        LEFT JOIN ({_CLAIMS}) AS c ON c.audit_id = a.id
        WHERE a.status IN ('extracted', 'completed') AND (
            coalesce(c.claims, 0) <> e.claims OR coalesce(c.last, -1) <> e.claims - 1)
        """,  # noqa: S608
        "audits whose claims are not as many as were extracted, numbered from 0 without a gap",
    ),
    Invariant(
        "verdicts",
        f"""
        SELECT a.id FROM halldetect.audits AS a
        LEFT JOIN ({_CLAIMS}) AS c ON c.audit_id = a.id
        WHERE a.status = 'completed' AND (
            coalesce(c.judged, 0) <> coalesce(c.claims, 0)
            OR coalesce(c.supported, 0) <> a.supported
            OR coalesce(c.contradicted, 0) <> a.contradicted
            OR coalesce(c.unsupported, 0) <> a.unsupported)
        """,  # noqa: S608
        "completed audits with claims that have no verdict, or with counts that are not those of "
        "the verdicts",
    ),
    Invariant(
        "probabilities",
        BROKEN_MATRICES,
        "completed audits whose probabilities are not one row a claim with a cell for each span",
    ),
    Invariant(
        "orphaned_probabilities",
        """
        SELECT DISTINCT p.audit_id AS id FROM halldetect.probabilities AS p
        WHERE NOT EXISTS (SELECT FROM halldetect.audits AS a
            WHERE a.id = p.audit_id AND a.month = p.month AND a.status = 'completed')
        """,
        "audits that are gone, not completed or of another month, and have probabilities",
        "a `halldetect prune` is running, or was interrupted: run the same command again; if they "
        "stay, DELETE the rows of halldetect.probabilities with these values of audit_id",
    ),
)


def checks(
    sessions: sessionmaker[Session], queue_of: Callable[[Stage], str], sweeping_queue: str
) -> Iterator[tuple[str, Callable[[], list[Finding]]]]:
    """Yield every check by its name, to be called for what it finds.

    Parameters
    ----------
    sessions : sessionmaker
        The database; its tables must be those of this version.
    queue_of : callable
        The queue whose workers do a stage.
    sweeping_queue : str
        The queue whose workers look for what was lost.
    """

    def operation(session: Session) -> list[Finding]:
        return operation_findings(session, queue_of, sweeping_queue)

    for invariant in INVARIANTS:
        yield invariant.name, _in_snapshot(sessions, partial(_violations, invariant))
    yield "scores", _in_snapshot(sessions, check_scores)
    yield "operation", _in_snapshot(sessions, operation)


def failed_audits(sessions: sessionmaker[Session]) -> int:
    """Count the audits that failed, which is nothing to mend in the database."""
    with sessions.begin() as session:
        read_one_snapshot(session)
        statement = select(func.count()).where(Audit.status == Status.FAILED)
        return session.scalars(statement).one()


def _in_snapshot(
    sessions: sessionmaker[Session], check: Callable[[Session], list[Finding]]
) -> Callable[[], list[Finding]]:
    def run() -> list[Finding]:
        with sessions.begin() as session:
            read_one_snapshot(session)
            return check(session)

    return run


def _violations(invariant: Invariant, session: Session) -> list[Finding]:
    # The queries above, which hold nothing of a caller's.
    statement = text(
        f"WITH violations AS MATERIALIZED ({invariant.violations})"  # noqa: S608
        " SELECT (SELECT count(*) FROM violations) AS total,"
        f" ARRAY(SELECT id FROM violations ORDER BY id LIMIT {_EXAMPLES}) AS examples"
    )
    row = session.execute(statement).one()
    if not row.total:
        return []
    examples = tuple(map(str, row.examples))
    return [Finding(invariant.name, invariant.problem, invariant.mend, row.total, examples)]
