"""Many audits as flat arrays of cells, checked once, so that numpy scores them all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halldetect.errors import VerificationError
from halldetect.scoring.matrix import ChunkSpans, ProbabilityArray, ScoringInput
from halldetect.scoring.segments import BoolArray, IntArray, offsets_of, ranges

SUM_TOLERANCE = 1e-3
"""How far the three probabilities of a cell may be from a sum of 1 (float32 softmax, storage)."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of many audits, audit after audit and claim after claim.

    Parameters
    ----------
    entailment, contradiction : float32 array, shape (n_cells,)
        Probabilities; NaN where a cell was not scored.
    cell_offsets : int64 array, shape (n_claims + 1,)
        Cells of each claim, one per span of its source, in span order.
    claim_offsets : int64 array, shape (n_audits + 1,)
        Claims of each audit.
    flagged : bool array, shape (n_claims,)
        Claims with a name, a number or a date.
    chunk_spans : tuple of ChunkSpans
        The distinct chunk structures.
    structure_of_claim : int64 array, shape (n_claims,)
        Which of them a claim's source has.
    """

    entailment: ProbabilityArray
    contradiction: ProbabilityArray
    cell_offsets: IntArray
    claim_offsets: IntArray
    flagged: BoolArray
    chunk_spans: tuple[ChunkSpans, ...]
    structure_of_claim: IntArray

    def of_audits(self, chosen: IntArray) -> Cells:
        """Return the cells of some audits alone, with the structures that these have.

        Parameters
        ----------
        chosen : int64 array
            Numbers of audits, ascending, none twice.
        """
        claim_counts = np.diff(self.claim_offsets)[chosen]
        claims = ranges(self.claim_offsets[:-1][chosen], claim_counts)
        cell_counts = np.diff(self.cell_offsets)[claims]
        cells = ranges(self.cell_offsets[:-1][claims], cell_counts)
        structures, structure_of_claim = np.unique(
            self.structure_of_claim[claims], return_inverse=True
        )
        return Cells(
            entailment=self.entailment[cells],
            contradiction=self.contradiction[cells],
            cell_offsets=offsets_of(cell_counts),
            claim_offsets=offsets_of(claim_counts),
            flagged=self.flagged[claims],
            chunk_spans=tuple(self.chunk_spans[structure] for structure in structures),
            structure_of_claim=structure_of_claim,
        )

    def claim_name(self, claim: int) -> str:
        """Name a claim by its audit's and its own number, for messages."""
        audit = int(np.searchsorted(self.claim_offsets, claim, side="right")) - 1
        return f"audit {audit}, claim {claim - int(self.claim_offsets[audit])}"


def cells_of(audits: Sequence[ScoringInput]) -> Cells:
    """Lay the matrices of `audits` end to end and check every number in them.

    Raises
    ------
    VerificationError
        A scored cell is no probability distribution, or a claim has no scored cell; the message
        names the audit, the claim and the span by their numbers.
    """
    n_claims = np.array([audit.matrix.n_claims for audit in audits], dtype=np.int64)
    n_spans = np.array([audit.matrix.n_spans for audit in audits], dtype=np.int64)
    structures: dict[int, int] = {}
    distinct: list[ChunkSpans] = []
    structure_of_audit = np.zeros(len(audits), dtype=np.int64)
    for number, audit in enumerate(audits):
        structure = structures.setdefault(id(audit.chunks), len(distinct))
        if structure == len(distinct):
            distinct.append(audit.chunks)
        structure_of_audit[number] = structure
    cells = Cells(
        entailment=_flat([audit.matrix.entailment for audit in audits]),
        contradiction=_flat([audit.matrix.contradiction for audit in audits]),
        cell_offsets=offsets_of(np.repeat(n_spans, n_claims)),
        claim_offsets=offsets_of(n_claims),
        flagged=np.concatenate([np.zeros(0, dtype=bool), *(audit.flagged for audit in audits)]),
        chunk_spans=tuple(distinct),
        structure_of_claim=np.repeat(structure_of_audit, n_claims),
    )
    _check(cells, _flat([audit.matrix.neutral for audit in audits]))
    return cells


def _flat(matrices: Sequence[ProbabilityArray]) -> ProbabilityArray:
    return np.concatenate([np.zeros(0, dtype=np.float32), *(matrix.ravel() for matrix in matrices)])


def _check(cells: Cells, neutral: ProbabilityArray) -> None:
    probabilities = (cells.entailment, neutral, cells.contradiction)
    skipped = np.isnan(probabilities[0]) & np.isnan(probabilities[1]) & np.isnan(probabilities[2])
    total = probabilities[0] + probabilities[1] + probabilities[2]
    valid = np.abs(total - 1) <= SUM_TOLERANCE  # False for NaN and infinity
    for array in probabilities:
        valid &= (array >= 0) & (array <= 1)
    wrong = np.flatnonzero(~(valid | skipped))
    if len(wrong):
        triple = tuple(float(array[wrong[0]]) for array in probabilities)
        raise VerificationError(
            f"{_cell_name(cells, int(wrong[0]))}: E, N, C = {triple} is no probability "
            f"distribution ({len(wrong)} such cells in all)"
        )
    scored = np.concatenate([[0], np.cumsum(~skipped)])
    empty = np.flatnonzero(np.diff(scored[cells.cell_offsets]) == 0)
    if len(empty):
        raise VerificationError(
            f"{cells.claim_name(int(empty[0]))} was scored against no span at all "
            f"({len(empty)} such claims in all)"
        )


def _cell_name(cells: Cells, cell: int) -> str:
    claim = int(np.searchsorted(cells.cell_offsets, cell, side="right")) - 1
    return f"{cells.claim_name(claim)}, span {cell - int(cells.cell_offsets[claim])}"
