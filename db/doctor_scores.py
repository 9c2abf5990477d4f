"""Whether stored scores are those of the stored probabilities: a sample is computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sqlalchemy import text
from sqlalchemy.orm import Session

from db.findings import Finding
from db.models import PolicyVersion
from db.selections import FixedSelection, Selection, fix_selection
from db.stored_matrices import SelectedAudits, next_audits, read_cells
from halldetect.scoring.fit import score_fitting
from halldetect.scoring.policy import Policy, parse_policy
from halldetect.scoring.verdict import Label, is_hallucinated

NEWEST, ANYWHERE = 500, 500
"""Sampled audits: the latest, where a new fault shows, and some of all."""
TOLERANCE = 1e-12
_EXAMPLES = 5

# Random numbers between the first and the last id, and the next audit from each on: no pass over
# the table. The matrix of each must be whole to be scored; others have a finding of their own.
_SAMPLE = text(
    """
    WITH candidates AS (
        (SELECT id FROM halldetect.audits WHERE status = 'completed' ORDER BY id DESC LIMIT :newest)
        UNION
        SELECT found.id FROM (
            SELECT first + CAST(floor(random() * (last - first + 1)) AS bigint) AS start
            FROM (SELECT min(id) AS first, max(id) AS last FROM halldetect.audits) AS ends,
                generate_series(1, :anywhere)
            OFFSET 0
        ) AS random_ids, LATERAL (
            SELECT id FROM halldetect.audits WHERE status = 'completed' AND id >= start
            ORDER BY id LIMIT 1
        ) AS found
    )
    SELECT a.id FROM candidates JOIN halldetect.audits AS a USING (id)
    JOIN halldetect.extractions AS e ON e.audit_id = a.id
    JOIN halldetect.verifications AS v ON v.audit_id = a.id
    JOIN halldetect.span_tables AS s ON s.id = v.span_table_id
    WHERE e.claims = a.supported + a.contradicted + a.unsupported
        AND e.claims = (SELECT count(*) FROM halldetect.claims AS c WHERE c.audit_id = a.id)
        AND e.claims = (SELECT count(*) FROM halldetect.probabilities AS p
            WHERE p.month = a.month AND p.audit_id = a.id
                AND cardinality(p.entailment) = cardinality(s.starts))
        AND e.claims = (SELECT count(*) FROM halldetect.probabilities AS p
            WHERE p.month = a.month AND p.audit_id = a.id)
    ORDER BY a.id
    """
)
_STORED = text(
    "SELECT id, coalesce(fedscore, 'NaN') AS score, label FROM halldetect.audits"
    " WHERE id = ANY(:ids) ORDER BY id"
)


def check_scores(session: Session) -> list[Finding]:
    """Score a sample of the completed audits again, from their probabilities.

    Memory is bounded as in a rescoring: audits are read in portions, whatever the sample.
    """
    ids = session.scalars(_SAMPLE, {"newest": NEWEST, "anywhere": ANYWHERE}).all()
    if not ids:
        return []
    different: list[int] = []
    selection, _ = fix_selection(session, Selection(ids=tuple(ids)))
    for audits in _portions(session, selection):
        for policy_id in np.unique(audits.policy_ids):
            of_policy = audits.only(audits.policy_ids == policy_id)
            different += _different(session, of_policy, _policy(session, int(policy_id)))
    if not different:
        return []
    finding = Finding(
        "scores",
        f"audits, of {len(ids):,} that were scored again, with a score or a label that is not that "
        "of their probabilities",
        "the score, the policy or the probabilities were changed by hand or damaged: restore a "
        "backup, or submit their records again; `halldetect verify AUDIT` compares one of them "
        "with a run of its models",
        len(different),
        tuple(map(str, sorted(different)[:_EXAMPLES])),
    )
    return [finding]


def _portions(session: Session, selection: FixedSelection) -> Iterator[SelectedAudits]:
    after = 0
    while len(audits := next_audits(session, selection, after)):
        yield audits
        after = int(audits.ids[-1])


def _policy(session: Session, policy_id: int) -> Policy:
    row = session.get_one(PolicyVersion, policy_id)
    return parse_policy({"name": row.name, **row.rules})


def _different(session: Session, audits: SelectedAudits, policy: Policy) -> Sequence[int]:
    """Return the audits whose stored score or label is another; also those without any now."""
    cells = read_cells(session, audits, policy)
    fitting = score_fitting(cells.cells, policy)
    scored_ids = cells.audit_ids[fitting.audits]
    scores = fitting.score.response_scores
    flagged = is_hallucinated(scores, policy)
    rows = session.execute(_STORED, {"ids": scored_ids.tolist()}).all()
    stored = np.array([row.score for row in rows], dtype=np.float64)
    labels = [
        None if np.isnan(score) else Label.HALLUCINATED if is_flagged else Label.FAITHFUL
        for score, is_flagged in zip(scores, flagged, strict=True)
    ]
    is_same = np.isclose(scores, stored, rtol=0.0, atol=TOLERANCE, equal_nan=True)
    is_same &= np.array([row.label for row in rows], dtype=object) == np.array(labels, dtype=object)
    unscored = np.setdiff1d(audits.ids, scored_ids)
    return [*scored_ids[~is_same].tolist(), *unscored.tolist()]
