"""Probabilities of many audits, read straight into the flat arrays that scoring works on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import Session

from db.driver import driver_connection
from db.models import Audit, Document, Scoring
from db.selections import FixedSelection, selected
from halldetect.scoring.cells import Cells
from halldetect.scoring.matrix import ChunkSpans, ProbabilityArray
from halldetect.scoring.policy import Policy
from halldetect.scoring.segments import BoolArray, IntArray, offsets_of

# A chunk is cut where its matrices would exceed a few hundred megabytes while they are scored.
MOST_AUDITS = 4096
_MOST_CELLS = 2_000_000
# What bounds the number of a document's spans from above: a few dozen, and windows beyond.
_LEAST_SPANS = 31
_CHARACTERS_PER_SPAN = 64

# As `array_send` writes an array of claims by spans: number of dimensions, whether there are
# nulls, type of the elements, then size and lower bound of both dimensions; each element after
# its length. All of it in big-endian 32-bit words.
_HEADER_WORDS = 7
_HEADER_BYTES = 4 * _HEADER_WORDS
_CLAIMS_WORD, _SPANS_WORD = 3, 5

_PROBABILITIES = """
    SELECT audit_id,
        array_send(array_replace(array_agg(entailment ORDER BY position), NULL, 'NaN')),
        array_send(array_replace(array_agg(contradiction ORDER BY position), NULL, 'NaN'))
    FROM halldetect.probabilities
    WHERE month = %s AND audit_id = ANY(%s)
    GROUP BY audit_id ORDER BY audit_id
"""
_FLAGS = """
    SELECT string_agg(
        CASE WHEN has_name OR has_number OR has_date THEN '1' ELSE '0' END, '' ORDER BY position)
    FROM halldetect.claims WHERE audit_id = ANY(%s)
    GROUP BY audit_id ORDER BY audit_id
"""
_SPAN_TABLES = """
    SELECT audit_id, span_table_id FROM halldetect.verifications
    WHERE audit_id = ANY(%s) ORDER BY audit_id
"""
_STRUCTURES = """
    SELECT chunk_granularity, chunk_offsets, chunk_spans, cardinality(starts), array_agg(id)
    FROM halldetect.span_tables WHERE id = ANY(%s)
    GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True, eq=False)
class SelectedAudits:
    """Consecutive audits of a selection, as columns.

    Parameters
    ----------
    ids : int64 array, shape (n_audits,)
        Ascending.
    months : object array of date, shape (n_audits,)
        Where their probabilities are.
    policy_ids : int64 array, shape (n_audits,)
        The policies that they were submitted with.
    claims : int64 array, shape (n_audits,)
        How many they have.
    """

    ids: IntArray
    months: NDArray[np.object_]
    policy_ids: IntArray
    claims: IntArray

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, chosen: BoolArray | slice) -> SelectedAudits:
        """Return some of them."""
        return SelectedAudits(
            self.ids[chosen], self.months[chosen], self.policy_ids[chosen], self.claims[chosen]
        )


@dataclass(frozen=True, slots=True, eq=False)
class StoredCells:
    """The matrices of several audits.

    Parameters
    ----------
    audit_ids : int64 array, shape (n_audits,)
        Ascending.
    cells : Cells
        In the same order.
    pruned : list of int
        Audits that have claims and whose probabilities were deleted.
    """

    audit_ids: IntArray
    cells: Cells
    pruned: list[int]


def next_audits(session: Session, selection: FixedSelection, after_audit_id: int) -> SelectedAudits:
    """Return the next audits of a selection, by id, as many as fit into memory together."""
    claims = Audit.supported + Audit.contradicted + Audit.unsupported
    page = (
        select(Audit.id, Audit.month, Audit.policy_id, claims.label("claims"), Document.characters)
        .join(Document, Document.id == Audit.document_id)
        .where(*selected(selection), Audit.id > after_audit_id)
        .order_by(Audit.id)
        .limit(MOST_AUDITS)
        .subquery()
    )
    # One row of arrays: thousands of rows would take longer than what is done with them.
    columns = session.execute(
        select(*(func.array_agg(aggregate_order_by(column, page.c.id)) for column in page.c))
    ).one()
    ids, months, policy_ids, claim_counts, characters = (column or [] for column in columns)
    audits = SelectedAudits(
        np.array(ids, dtype=np.int64),
        np.array(months, dtype=object),
        np.array(policy_ids, dtype=np.int64),
        np.array(claim_counts, dtype=np.int64),
    )
    spans = _LEAST_SPANS + np.array(characters, dtype=np.int64) // _CHARACTERS_PER_SPAN
    fitting = np.searchsorted(np.cumsum(audits.claims * spans), _MOST_CELLS, side="right")
    return audits.only(slice(max(1, int(fitting))))


def scored_audits(session: Session, policy_id: int, audits: SelectedAudits) -> BoolArray:
    """Tell which of `audits` have a score under the policy, their own or a scoring."""
    stored = session.scalars(
        select(Scoring.audit_id).where(
            Scoring.policy_id == policy_id,
            Scoring.audit_id.between(int(audits.ids[0]), int(audits.ids[-1])),
        )
    )
    is_present: BoolArray = audits.policy_ids == policy_id
    return is_present | np.isin(audits.ids, np.array(stored.all(), dtype=np.int64))


def read_cells(session: Session, audits: SelectedAudits, policy: Policy) -> StoredCells:
    """Read the matrices of completed audits, with as much beside them as `policy` reads.

    The probabilities were checked before they were stored: they are not checked again, and the
    neutral ones, which no policy reads, are left out. Several statements read it: they must see
    one snapshot, or audits may be deleted in between.

    Parameters
    ----------
    session : Session
        Where they are read.
    audits : SelectedAudits
        Which.
    policy : Policy
        What they will be scored under.
    """
    has_claims = audits.claims > 0
    matrices = _read_matrices(session, audits.only(has_claims))
    is_pruned = has_claims & ~np.isin(audits.ids, matrices.audit_ids)
    kept = audits.ids[~is_pruned]
    places = np.searchsorted(kept, matrices.audit_ids)
    claim_counts, span_counts = np.zeros((2, len(kept)), dtype=np.int64)
    claim_counts[places] = matrices.claims
    span_counts[places] = matrices.spans
    chunk_spans, structures = _read_structures(session, kept, policy)
    return StoredCells(
        audit_ids=kept,
        cells=Cells(
            entailment=matrices.entailment,
            contradiction=matrices.contradiction,
            cell_offsets=offsets_of(np.repeat(span_counts, claim_counts)),
            claim_offsets=offsets_of(claim_counts),
            flagged=_read_flags(session, kept, int(claim_counts.sum()), policy),
            chunk_spans=chunk_spans,
            structure_of_claim=np.repeat(structures, claim_counts),
        ),
        pruned=audits.ids[is_pruned].tolist(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Matrices:
    """Matrices end to end: of these audits, with so many claims and spans each."""

    audit_ids: IntArray
    claims: IntArray
    spans: IntArray
    entailment: ProbabilityArray
    contradiction: ProbabilityArray


def _read_matrices(session: Session, audits: SelectedAudits) -> _Matrices:
    rows: list[tuple[int, bytes, bytes]] = []
    for month in np.unique(audits.months):
        ids = audits.ids[audits.months == month]
        rows += _fetch(session, _PROBABILITIES, month, ids.tolist())
    # Around midnight a later month may have the lower ids.
    rows.sort(key=itemgetter(0))
    header = np.frombuffer(b"".join(row[1][:_HEADER_BYTES] for row in rows), dtype=">i4")
    words = header.reshape(-1, _HEADER_WORDS).astype(np.int64)
    return _Matrices(
        audit_ids=np.array([row[0] for row in rows], dtype=np.int64),
        claims=words[:, _CLAIMS_WORD],
        spans=words[:, _SPANS_WORD],
        entailment=_elements(row[1] for row in rows),
        contradiction=_elements(row[2] for row in rows),
    )


def _elements(arrays: Iterable[bytes]) -> ProbabilityArray:
    words = np.frombuffer(b"".join(array[_HEADER_BYTES:] for array in arrays), dtype=">f4")
    return words[1::2].astype(np.float32)  # each element follows its length


def _read_flags(session: Session, ids: IntArray, claims: int, policy: Policy) -> BoolArray:
    """Tell which claims have a name, a number or a date, if the policy asks."""
    if not policy.reads_flags:
        return np.zeros(claims, dtype=bool)
    rows = _fetch(session, _FLAGS, ids.tolist())
    flags = np.frombuffer("".join(row[0] for row in rows).encode("ascii"), dtype=np.uint8)
    return np.equal(flags, ord("1"))


def _read_structures(
    session: Session, ids: IntArray, policy: Policy
) -> tuple[tuple[ChunkSpans, ...], IntArray]:
    """Return the distinct chunk structures and which an audit has, if the policy asks."""
    if not policy.reads_chunks:
        return (), np.zeros(len(ids), dtype=np.int64)
    table_of_audit = np.array(
        [row[1] for row in _fetch(session, _SPAN_TABLES, ids.tolist())], dtype=np.int64
    )
    tables, table_numbers = np.unique(table_of_audit, return_inverse=True)
    structure_of_table = np.zeros(len(tables), dtype=np.int64)
    structures: list[ChunkSpans] = []
    for granularity, offsets, indices, spans, table_ids in _fetch(
        session, _STRUCTURES, tables.tolist()
    ):
        structure_of_table[np.searchsorted(tables, table_ids)] = len(structures)
        structures.append(
            ChunkSpans(np.array(granularity), np.array(offsets), np.array(indices), spans)
        )
    return tuple(structures), structure_of_table[table_numbers]


def _fetch(session: Session, statement: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
    with driver_connection(session).cursor(binary=True) as cursor:
        return cursor.execute(statement, values).fetchall()
