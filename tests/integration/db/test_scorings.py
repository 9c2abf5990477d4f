"""Matrices come back as they were stored, and scorings hold what scoring says of them."""

from __future__ import annotations

import numpy as np
import pytest
from rescored_audits import make_policy
from sqlalchemy import select, text

from db.audits import get_audit
from db.driver import driver_connection
from db.models import Audit, Claim, Scoring
from db.scorings import AuditDeleted, store_scorings
from db.selections import Selection, fix_selection
from db.stored_matrices import next_audits, read_cells
from halldetect.rescoring import rescore as rescore_trail
from halldetect.scoring.policy import BUILTIN_POLICIES, parse_policy
from halldetect.scoring.score import score_cells
from halldetect.sources import prepare_source
from halldetect.verification import hypotheses_of

LONG_SOURCE = " ".join(
    f"The pump of mill {n} was replaced in week {n}, and mill {n} paid {n * 70} euros for it."
    for n in range(60)
)
RESPONSES = [
    "The mill opened in 1900. The mill was founded by monks. Nobody was hurt.",
    "Thanks!",
    "It closed in 1950 after a fire. A dragon lives in it. It was sold in 1960 to Maria Lopez.",
]
LONG_RESPONSES = [
    "Mill 12 paid 840 euros. The pump of mill 59 was replaced in week 59. Mill 7 was closed.",
]
POLICIES = [
    *BUILTIN_POLICIES.values(),
    *(
        parse_policy({"name": f"policy-{number}", **rules})
        for number, rules in enumerate(
            [
                {"claim_value": "contrastive", "aggregation": "mean", "margin": 0.1},
                {"claim_value": "contradiction", "aggregation": "weighted"},
                {"claim_value": "entailment", "aggregation": "weighted", "granularities": [2, 8]},
                {"claim_value": "contrastive", "aggregation": "fedscore", "granularities": [16]},
                {"claim_value": "entailment", "aggregation": "min", "granularities": [1]},
            ]
        )
    ),
]


@pytest.fixture
def audits(service, random_matrix):
    """Short and long sources, audits with and without claims, one with pre-selected spans."""
    service.submit(*RESPONSES)
    service.submit(*LONG_RESPONSES, source=LONG_SOURCE, policy="paper")
    service.submit(*LONG_RESPONSES, source=LONG_SOURCE, policy="mean")
    for claimed in service.claim_extraction():
        service.extract(claimed)
    for claimed in service.claim_verification():
        source = prepare_source(claimed.source, service.nli, 50_000)
        hypotheses = hypotheses_of(claimed.claims, claimed.response, service.nli)
        matrix = random_matrix(len(claimed.claims), len(source.library.spans))
        preselected = 3 if claimed.policy.name == "mean" else None
        if preselected is not None:
            for array in (matrix.entailment, matrix.neutral, matrix.contradiction):
                array[:, preselected:] = np.nan
        service.save(claimed, source, hypotheses, matrix, preselected)


def every_audit(session, **filters):
    fixed, _ = fix_selection(session, Selection(**filters))
    return next_audits(session, fixed, 0)


def test_the_policy_of_an_audit_gives_its_stored_score_again(service, sessions):
    """On real audits, with the encoder's own probabilities."""
    for policy in BUILTIN_POLICIES:
        service.submit(*RESPONSES, policy=policy)
    service.submit("Mill 3 paid 210 euros.", source=LONG_SOURCE[:1000], policy="paper")
    service.run()
    compared = 0
    for policy in BUILTIN_POLICIES.values():
        with sessions.begin() as session:
            stored = read_cells(session, every_audit(session, policy=policy.name), policy)
            score = score_cells(stored.cells, policy)
            of_policy = Audit.id.in_(stored.audit_ids.tolist())
            fedscores = session.scalars(select(Audit.fedscore).where(of_policy).order_by(Audit.id))
            values = session.scalars(
                select(Claim.score)
                .join(Audit, Audit.id == Claim.audit_id)
                .where(of_policy)
                .order_by(Claim.audit_id, Claim.position)
            )
            expected = np.array([np.nan if one is None else one for one in fedscores])
            np.testing.assert_allclose(score.response_scores, expected, rtol=0, atol=1e-12)
            np.testing.assert_allclose(score.values, list(values), rtol=0, atol=1e-12)
            compared += len(expected)
    assert compared == 13


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_stored_scorings_are_those_of_the_trails(audits, sessions, policy):
    with sessions.begin() as session:
        chosen = every_audit(session)
        if policy.reads_chunks:  # pre-selection may have left out what these policies read
            chosen = chosen.only(slice(-1))
        stored = read_cells(session, chosen, policy)
        kept = make_policy(session, **{**policy.model_dump(mode="json"), "name": policy.name})
        score = score_cells(stored.cells, policy)
        assert store_scorings(session, kept.id, stored.audit_ids, score) == len(chosen)
    with sessions.begin() as session:
        for audit_id in stored.audit_ids.tolist():
            expected = rescore_trail(get_audit(session, audit_id, with_matrix=True), policy)
            row = session.get(Scoring, (audit_id, kept.id))
            assert row.response_score == expected.response_score
            assert row.label == expected.label
            assert row.deciding_claim == expected.deciding_claim
            assert row.claim_values == expected.values.tolist()
            assert row.verdicts == list(expected.verdicts)


def test_a_score_that_is_there_is_not_replaced(audits, sessions):
    with sessions.begin() as session:
        policy = make_policy(session, "strict", margin=0.2)
        stored = read_cells(session, every_audit(session, batch_id=1), policy.policy)
        score = score_cells(stored.cells, policy.policy)
        assert store_scorings(session, policy.id, stored.audit_ids, score) == 3
    with sessions.begin() as session:
        before = session.execute(text("SELECT xmin, * FROM halldetect.scorings")).all()
    with sessions.begin() as session:
        stored = read_cells(session, every_audit(session), policy.policy)
        score = score_cells(stored.cells, policy.policy)
        assert store_scorings(session, policy.id, stored.audit_ids, score) == 2
    with sessions.begin() as session:
        assert session.execute(text("SELECT xmin, * FROM halldetect.scorings")).all()[:3] == before


def test_a_deleted_audit_refuses_the_whole_chunk(audits, sessions):
    with sessions.begin() as session:
        policy = make_policy(session, "strict", margin=0.2)
        stored = read_cells(session, every_audit(session), policy.policy)
        session.execute(text("DELETE FROM halldetect.audits WHERE id = 2"))
    score = score_cells(stored.cells, policy.policy)
    with pytest.raises(AuditDeleted), sessions.begin() as session:
        store_scorings(session, policy.id, stored.audit_ids, score)
    with sessions.begin() as session:
        assert session.scalars(select(Scoring)).all() == []


def test_months_do_not_change_the_order_of_audits(audits, sessions):
    """At midnight the audit with the higher id may belong to the earlier month."""
    with sessions.begin() as session:
        whole = read_cells(session, every_audit(session), BUILTIN_POLICIES["mean"])
        session.execute(
            text(
                "CREATE TABLE moved AS SELECT * FROM halldetect.probabilities WHERE audit_id = 3;"
                "DELETE FROM halldetect.probabilities WHERE audit_id = 3;"
                "UPDATE halldetect.audits SET submitted_at = '2020-01-31' WHERE id = 3;"
                "CREATE TABLE halldetect.probabilities_2020_01 PARTITION OF"
                " halldetect.probabilities FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');"
                "INSERT INTO halldetect.probabilities SELECT '2020-01-01', audit_id, position,"
                " entailment, neutral, contradiction FROM moved"
            )
        )
        moved = read_cells(session, every_audit(session), BUILTIN_POLICIES["mean"])
        session.rollback()
    np.testing.assert_array_equal(moved.audit_ids, whole.audit_ids)
    np.testing.assert_array_equal(moved.cells.entailment, whole.cells.entailment)
    np.testing.assert_array_equal(moved.cells.claim_offsets, whole.cells.claim_offsets)


def test_spans_that_were_skipped_are_nan(audits, sessions):
    with sessions.begin() as session:
        last = every_audit(session).only(slice(-1, None))
        cells = read_cells(session, last, BUILTIN_POLICIES["mean"]).cells
    assert np.isnan(cells.entailment).any()
    assert (np.isnan(cells.entailment) == np.isnan(cells.contradiction)).all()
    scored_per_claim = np.add.reduceat(~np.isnan(cells.entailment), cells.cell_offsets[:-1])
    assert set(scored_per_claim) == {3}


def test_chunks_are_cut_before_they_grow_too_large(audits, sessions, monkeypatch):
    monkeypatch.setattr("db.stored_matrices._MOST_CELLS", 1)
    with sessions.begin() as session:
        fixed, total = fix_selection(session, Selection())
        after, chunks = 0, []
        while len(chunk := next_audits(session, fixed, after)):
            chunks.append(chunk.ids.tolist())
            after = int(chunk.ids[-1])
    assert total == 5
    assert chunks == [[1], [2], [3], [4], [5]]


def test_the_driver_gives_a_connection_in_the_sessions_transaction(sessions):
    with sessions.begin() as session:
        session.execute(text("CREATE TEMPORARY TABLE mine (x int) ON COMMIT DROP"))
        with driver_connection(session).cursor() as cursor:
            assert cursor.execute("SELECT count(*) FROM mine").fetchone() == (0,)
