"""Audits of a history as rows: what chance decided, written down and scored by the real rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from history_audit_rows import add_done, add_not_done, add_scoring
from history_chance import Drawn, Plan, draw, matrices, skipped
from history_rows import Rows, probability_rows, without_nan
from history_sources import structure_of

from halldetect.scoring.matrix import ProbabilityMatrix, ScoringInput
from halldetect.scoring.score import score_audits


@dataclass(frozen=True, slots=True)
class Portion:
    """Consecutive audits, as rows of all their tables."""

    rows: Rows
    claims: int
    cells: int


def make_portion(
    plan: Plan,
    random: np.random.Generator,
    first: int,
    last: int,
    earlier_claims: int,
    *,
    rescored: bool,
) -> Portion:
    """Invent the audits from `first` up to `last`, counted from 0.

    Parameters
    ----------
    earlier_claims : int
        Claims of all audits before these.
    rescored : bool
        Whether audits under the first policy are scored under the second too.
    """
    drawn = draw(plan, random, first, last, earlier_claims)
    rows = Rows()
    inputs, cells = _add_probabilities(rows, plan, random, drawn)
    policies = plan.policies
    for policy, under_paper in ((policies.embedded, False), (policies.paper, True)):
        audits = np.flatnonzero(drawn.done & (drawn.under_paper == under_paper)).tolist()
        chosen = [inputs[audit] for audit in audits]
        scores = score_audits(chosen, policy.policy)
        for place, audit in enumerate(audits):
            add_done(rows, plan, drawn, audit, policy.id, scores, place)
        if rescored and not under_paper:
            scores = score_audits(chosen, policies.paper.policy)
            for place, audit in enumerate(audits):
                add_scoring(rows, plan, drawn, audit, scores.audit(place))
    for audit in np.flatnonzero(~drawn.done).tolist():
        add_not_done(rows, plan, drawn, audit)
    return Portion(rows, len(drawn.fact), cells)


def _add_probabilities(
    rows: Rows, plan: Plan, random: np.random.Generator, drawn: Drawn
) -> tuple[dict[int, ScoringInput], int]:
    """Invent the matrices of all audits; return what scoring needs, and the number of cells."""
    inputs: dict[int, ScoringInput] = {}
    blocks: dict[int, bytes] = {}
    cells = 0
    sentences = plan.documents.sentences[drawn.document]
    counts = np.diff(drawn.offsets)
    for length in np.unique(sentences):
        structure = structure_of(int(length))
        audits = np.flatnonzero((sentences == length) & drawn.done)
        claims = np.flatnonzero(np.isin(np.repeat(np.arange(len(counts)), counts), audits))
        found = matrices(
            random, structure.holds[drawn.sentence[claims]], drawn.kind[claims][:, None]
        )
        cells += found[0].size
        data, size = probability_rows(
            np.repeat(drawn.times[0, audits], counts[audits]),
            np.repeat(audits + drawn.first + 1, counts[audits]),
            claims - np.repeat(drawn.offsets[audits], counts[audits]),
            found,
        )
        at = 0
        for audit in audits.tolist():
            end = at + int(counts[audit])
            own = [matrix[at:end] for matrix in found]
            block = data[at * size : end * size]
            if drawn.preselected[audit]:
                holes = skipped(random, own[0].shape)
                block = without_nan(block, size, holes)
                own = [np.where(holes, np.float32(np.nan), matrix) for matrix in own]
            blocks[audit] = block
            # Every claim has a number.
            flagged = np.ones(end - at, dtype=bool)
            inputs[audit] = ScoringInput(ProbabilityMatrix(*own), flagged, structure.chunks)
            at = end
    for audit in sorted(blocks):
        rows.add_probabilities(blocks[audit])
    return inputs, cells
