import numpy as np
import pytest

from halldetect.errors import PolicyError
from halldetect.scoring.cells import cells_of
from halldetect.scoring.fit import Misfit, score_fitting
from halldetect.scoring.matrix import ProbabilityMatrix, ScoringInput
from halldetect.scoring.policy import BUILTIN_POLICIES, parse_policy
from halldetect.scoring.score import score_audits, score_cells

NAN = float("nan")
GRADED = {"name": "t", "claim_value": "entailment", "aggregation": "mean"}
ROW_MAX = BUILTIN_POLICIES["row-max"]


@pytest.fixture
def audits(grouped, one_chunk_each, matrix):
    """A whole audit, one of granularity 1, one with one span pre-selected, one without claims."""
    spans, chunks = grouped(2)
    whole = matrix([[0.9, 0.2, 0.3], [0.1, 0.2, 0.4]], [[0.05, 0.1, 0.1], [0.2, 0.1, 0.1]])
    coarse = matrix([[0.8, NAN, NAN]], [[0.1, NAN, NAN]])
    coarse_only = matrix([[0.6]], [[0.2]])
    none = ProbabilityMatrix(*(np.zeros((0, 1), dtype=np.float32),) * 3)
    assert spans[(0, 2)] == 0
    return [
        ScoringInput(whole, np.array([True, False]), chunks),
        ScoringInput(coarse_only, np.array([False]), one_chunk_each(1)),
        ScoringInput(coarse, np.array([False]), chunks),
        ScoringInput(none, np.zeros(0, dtype=bool), one_chunk_each(1)),
    ]


def alike(batch, other):
    np.testing.assert_array_equal(batch.values, other.values)
    np.testing.assert_array_equal(batch.response_scores, other.response_scores)
    np.testing.assert_array_equal(batch.claim_offsets, other.claim_offsets)
    np.testing.assert_array_equal(batch.contradicted, other.contradicted)


def test_a_policy_that_fits_all_scores_all_alike(audits):
    policy = parse_policy(GRADED)
    fitting = score_fitting(cells_of(audits), policy)
    assert fitting.audits.tolist() == [0, 1, 2, 3]
    assert fitting.misfits == {}
    alike(fitting.score, score_audits(audits, policy))


def test_audits_without_the_granularity_are_set_aside_and_the_rest_is_scored_alike(audits):
    policy = parse_policy({**GRADED, "granularities": [2]})
    fitting = score_fitting(cells_of(audits), policy)
    assert fitting.audits.tolist() == [0, 3]
    assert {misfit: audits.tolist() for misfit, audits in fitting.misfits.items()} == {
        Misfit.GRANULARITIES_MISSING: [1],
        Misfit.SPANS_NOT_SCORED: [2],
    }
    scored, without_claims = fitting.score.audit(0), fitting.score.audit(1)
    alone = score_audits(audits[:1], policy).audit(0)
    assert scored.response_score == alone.response_score
    assert scored.verdicts == alone.verdicts
    assert without_claims.response_score is None


def test_row_max_sets_aside_what_pre_selection_left_without_finest_spans(audits):
    fitting = score_fitting(cells_of(audits), ROW_MAX)
    assert fitting.audits.tolist() == [0, 1, 3]
    assert fitting.misfits[Misfit.SPANS_NOT_SCORED].tolist() == [2]
    assert fitting.misfits[Misfit.GRANULARITIES_MISSING].tolist() == []


def test_when_nothing_fits_nothing_is_scored(audits):
    fitting = score_fitting(cells_of(audits[1:3]), parse_policy({**GRADED, "granularities": [64]}))
    assert fitting.audits.tolist() == []
    assert len(fitting.score) == 0
    assert fitting.misfits[Misfit.GRANULARITIES_MISSING].tolist() == [0, 1]


def test_an_audit_without_claims_fits_every_policy(audits):
    fitting = score_fitting(cells_of(audits[3:]), parse_policy({**GRADED, "granularities": [64]}))
    assert fitting.audits.tolist() == [0]
    assert fitting.score.audit(0).label is None


@pytest.mark.parametrize("chosen", [[0, 2], [1], [3], [], [0, 1, 2, 3]])
def test_cells_of_some_audits_score_as_these_audits_alone(audits, chosen):
    policy = parse_policy({**GRADED, "aggregation": "weighted"})
    some = cells_of(audits).of_audits(np.array(chosen, dtype=np.int64))
    alike(score_cells(some, policy), score_audits([audits[n] for n in chosen], policy))


def test_cells_of_some_audits_keep_only_their_structures(audits):
    some = cells_of(audits).of_audits(np.array([2]))
    assert len(some.chunk_spans) == 1
    with pytest.raises(PolicyError, match="pre-selection skipped"):
        score_cells(some, ROW_MAX)
