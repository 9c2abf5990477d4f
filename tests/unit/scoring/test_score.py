import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halldetect.errors import PolicyError, VerificationError
from halldetect.scoring.matrix import ChunkSpans, ProbabilityMatrix, ScoringInput
from halldetect.scoring.policy import EMBEDDED, PAPER, parse_policy
from halldetect.scoring.score import score_audit, score_audits
from halldetect.scoring.verdict import Label, Verdict, is_hallucinated, label_of

# Timing belongs in the benchmarks: on a busy machine a slow example is no fault.
unhurried = settings(deadline=None, max_examples=30)

NAN = float("nan")
SUPPORTED, CONTRADICTED, UNSUPPORTED = (
    Verdict.SUPPORTED,
    Verdict.CONTRADICTED,
    Verdict.UNSUPPORTED,
)


def policy(claim_value="entailment", aggregation="mean", **rules):
    return parse_policy(
        {"name": "test", "claim_value": claim_value, "aggregation": aggregation, **rules}
    )


def score(matrix, chunks, rules, flagged=None):
    flags = np.zeros(matrix.n_claims, dtype=bool) if flagged is None else np.array(flagged)
    return score_audit(matrix, flags, chunks, rules)


@pytest.fixture
def transit(grouped):
    """Return the transit plan: 8 sentences, 3 claims, 15 distinct spans."""
    spans, chunks = grouped(8)
    triples = np.tile(np.array([0.01, 0.98, 0.01], dtype=np.float32), (3, 15, 1))
    second, third, sixth = spans[(1, 2)], spans[(2, 3)], spans[(5, 6)]
    triples[0, second] = (0.97, 0.02, 0.01)
    triples[1, third] = (0.01, 0.06, 0.93)
    triples[2, sixth] = (0.01, 0.91, 0.08)
    matrix = ProbabilityMatrix(*(np.ascontiguousarray(triples[:, :, i]) for i in range(3)))
    return matrix, chunks, (second, third, sixth)


def test_the_worked_example(transit):
    matrix, chunks, (second, third, sixth) = transit
    result = score(matrix, chunks, PAPER)
    assert result.verdicts == (SUPPORTED, CONTRADICTED, UNSUPPORTED)
    np.testing.assert_allclose(result.values, [0.96, -0.92, -0.07], atol=1e-6)
    assert result.best_entailment_spans[0] == second
    assert result.best_contradiction_spans[1] == third
    assert result.best_contradiction_spans[2] == sixth
    assert result.response_score == 1.0
    assert result.label is Label.HALLUCINATED
    assert result.deciding_claim == 1
    assert result.verdict_counts == {SUPPORTED: 1, CONTRADICTED: 1, UNSUPPORTED: 1}


def test_the_worked_example_without_its_sentences_finds_no_evidence(transit):
    matrix, chunks, _ = transit
    result = score(matrix, chunks, policy("contrastive", "fedscore", granularities=[1, 2, 4]))
    assert result.verdicts == (UNSUPPORTED,) * 3
    np.testing.assert_array_equal(result.values, [0.0] * 3)
    assert result.best_entailment_spans.tolist() == [0] * 3


def test_other_policies_grade_the_worked_example_without_a_model(transit):
    matrix, chunks, _ = transit
    graded = score(matrix, chunks, policy("entailment", "mean"))
    assert graded.response_score == pytest.approx(1 - 0.99 / 3, abs=1e-6)
    assert graded.deciding_claim is None
    lowest = score(matrix, chunks, EMBEDDED)
    assert lowest.response_score == pytest.approx(0.99, abs=1e-6)
    assert lowest.deciding_claim == 1
    doubted = score(matrix, chunks, policy("contradiction", "mean"))
    np.testing.assert_allclose(doubted.values, [0.99, 0.07, 0.92], atol=1e-6)
    weighted = score(matrix, chunks, policy("entailment", "weighted"), [True, False, False])
    assert weighted.response_score == pytest.approx(1 - (2 * 0.97 + 0.02) / 4, abs=1e-6)


def test_row_max_averages_the_best_entailment_over_the_finest_chunks(transit):
    matrix, chunks, _ = transit
    result = score(matrix, chunks, policy("entailment", "row-max"))
    np.testing.assert_allclose(result.values, [0.97, 0.01, 0.01], atol=1e-6)
    assert result.response_score == pytest.approx(1 - result.values.mean(), abs=1e-12)


def test_row_max_ignores_coarser_chunks_and_skipped_spans(matrix):
    chunks = ChunkSpans(
        np.array([1, 2, 2, 2]), np.array([0, 1, 3, 4, 5]), np.array([0, 1, 2, 3, 2]), 4
    )
    entailment = [[0.9, 0.2, 0.6, NAN], [0.9, NAN, 0.4, 0.1]]
    result = score(
        matrix(entailment, np.multiply(entailment, 0.0)), chunks, policy("entailment", "row-max")
    )
    np.testing.assert_allclose(result.values, [0.6, 0.4], atol=1e-6)


def test_one_supported_one_contradicted_one_unsupported(matrix, one_chunk_each):
    probabilities = matrix([[0.9], [0.1], [0.2]], [[0.05], [0.8], [0.3]])
    result = score(probabilities, one_chunk_each(1), PAPER)
    assert result.verdicts == (SUPPORTED, CONTRADICTED, UNSUPPORTED)
    assert list(result.verdict_counts.values()) == [1, 1, 1]


def test_one_unsupported_claim_decides_while_the_others_read_supported(matrix, one_chunk_each):
    probabilities = matrix([[0.95], [0.9], [0.05]], [[0.01], [0.02], [0.1]])
    result = score(probabilities, one_chunk_each(1), PAPER)
    assert result.verdict_counts[SUPPORTED] == 2
    assert result.response_score == 1.0
    assert result.deciding_claim == 2
    mean = score(probabilities, one_chunk_each(1), policy("contrastive", "mean"))
    assert 0.3 < mean.response_score < 0.5


@pytest.mark.parametrize(
    ("entailment", "contradiction", "rules", "verdict"),
    [
        ([0.5, 0.0], [0.0, 0.0], {}, SUPPORTED),
        ([0.4999, 0.0], [0.0, 0.0], {}, UNSUPPORTED),
        ([0.0, 0.0], [0.5, 0.0], {}, CONTRADICTED),
        ([0.0, 0.0], [0.4999, 0.0], {}, UNSUPPORTED),
        # Both reach their thresholds, on different spans: the higher one wins.
        ([0.9, 0.0], [0.0, 0.8], {}, SUPPORTED),
        ([0.8, 0.0], [0.0, 0.9], {}, CONTRADICTED),
        # Equal: not contradicted (C is not above E) and not supported (E - C is no margin).
        ([0.75, 0.0], [0.0, 0.75], {}, UNSUPPORTED),
        ([0.75, 0.0], [0.0, 0.5], {"margin": 0.25}, UNSUPPORTED),
        ([0.75, 0.0], [0.0, 0.5], {"margin": 0.125}, SUPPORTED),
        ([0.5, 0.0], [0.0, 0.75], {"contradiction_threshold": 0.8}, UNSUPPORTED),
        ([0.5, 0.0], [0.0, 0.25], {"entailment_threshold": 0.6}, UNSUPPORTED),
    ],
)
def test_verdicts_at_their_thresholds(
    matrix, one_chunk_each, entailment, contradiction, rules, verdict
):
    result = score(
        matrix([entailment], [contradiction]),
        one_chunk_each(2),
        policy("contrastive", "fedscore", **rules),
    )
    assert result.verdicts == (verdict,)


def test_equal_evidence_is_supported_where_contradiction_has_no_part_in_the_value(
    matrix, one_chunk_each
):
    result = score(matrix([[0.75, 0.0]], [[0.0, 0.75]]), one_chunk_each(2), EMBEDDED)
    assert result.verdicts == (SUPPORTED,)


def test_a_stored_probability_just_below_a_threshold_does_not_reach_it(matrix, one_chunk_each):
    below = np.float32(0.7)  # 0.699999988...
    result = score(
        matrix([[below]], [[0.0]]),
        one_chunk_each(1),
        policy("entailment", "min", entailment_threshold=0.7),
    )
    assert result.verdicts == (UNSUPPORTED,)


def test_of_equal_spans_the_first_is_shown_and_skipped_cells_never(matrix, one_chunk_each):
    entailment = [[NAN, 0.3, 0.5, 0.5], [0.0, NAN, NAN, 0.0]]
    contradiction = [[NAN, 0.2, 0.1, 0.2], [0.0, NAN, NAN, 0.0]]
    result = score(matrix(entailment, contradiction), one_chunk_each(4), PAPER)
    assert result.best_entailment_spans.tolist() == [2, 0]
    assert result.best_contradiction_spans.tolist() == [1, 0]
    np.testing.assert_allclose(result.best_entailment, [0.5, 0.0])
    assert not np.isnan(result.values).any()


def test_the_response_threshold_itself_is_hallucinated(matrix, one_chunk_each):
    half = matrix([[0.5]], [[0.0]])
    assert score(half, one_chunk_each(1), PAPER).label is Label.HALLUCINATED
    lenient = policy("contrastive", "fedscore", response_threshold=0.51)
    assert score(half, one_chunk_each(1), lenient).label is Label.FAITHFUL


@pytest.mark.parametrize("rules", [PAPER, EMBEDDED, policy(), policy("entailment", "row-max")])
@pytest.mark.parametrize("n_spans", [0, 2])
def test_no_claims_no_score(matrix, one_chunk_each, rules, n_spans):
    empty = matrix(np.zeros((0, n_spans)), np.zeros((0, n_spans)))
    result = score(empty, one_chunk_each(n_spans), rules)
    assert result.response_score is None
    assert result.label is None
    assert result.deciding_claim is None
    assert result.verdicts == ()
    assert result.values.shape == (0,)


def test_labels_of_many_responses_are_those_of_each():
    scores = np.array([0.0, 0.4999999999999999, 0.5, 1.0])
    flags = is_hallucinated(scores, PAPER).tolist()
    assert flags == [False, False, True, True]
    assert flags == [label_of(score, PAPER) is Label.HALLUCINATED for score in scores.tolist()]
    assert not is_hallucinated(np.array([NAN]), PAPER).any()


def test_a_missing_score_has_no_label_and_is_never_nan():
    assert label_of(None, PAPER) is None
    with pytest.raises(ValueError, match="None, not NaN"):
        label_of(NAN, PAPER)


def test_a_policy_whose_spans_were_all_skipped_is_refused(matrix, grouped):
    _, chunks = grouped(2, granularities=(1, 2))
    skipped = matrix([[0.9, 0.9, 0.9], [0.8, NAN, NAN]], [[0.0] * 3, [0.0, NAN, NAN]])
    for rules in (policy(granularities=[2]), policy("entailment", "row-max")):
        with pytest.raises(PolicyError, match="pre-selection skipped for audit 0, claim 1"):
            score(skipped, chunks, rules)
    assert score(skipped, chunks, policy(granularities=[1])).verdicts == (SUPPORTED, SUPPORTED)


def test_nothing_to_score_is_an_empty_batch():
    for rules in (PAPER, policy(granularities=[1]), policy("entailment", "row-max")):
        assert len(score_audits([], rules)) == 0


ALL_POLICIES = [
    PAPER,
    EMBEDDED,
    policy("contradiction", "weighted", margin=0.25),
    policy("contrastive", "mean", granularities=[1, 4]),
    policy("contrastive", "fedscore", granularities=[16]),
    policy("entailment", "row-max"),
]


@st.composite
def audits(draw, grouped):
    """Draw audits of different sources, some shared, some with skipped cells or no claims."""
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    sources = [grouped(n)[1] for n in draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))]
    drawn = []
    for _ in range(draw(st.integers(1, 6))):
        chunks = sources[random.integers(len(sources))]
        n_claims = int(random.integers(0, 6))
        probabilities = random.dirichlet([0.3, 0.3, 0.3], (n_claims, chunks.n_spans))
        skipped = random.random((n_claims, chunks.n_spans)) < 0.3
        # The whole source and its first sixteenth stay, so that every policy finds evidence.
        skipped[:, [0, chunks.indices[np.argmax(chunks.granularity == 16)]]] = False
        probabilities[skipped] = NAN
        arrays = np.moveaxis(probabilities.astype(np.float32), 2, 0)
        flagged = random.random(n_claims) < 0.5
        drawn.append(ScoringInput(ProbabilityMatrix(*arrays), flagged, chunks))
    return drawn


def assert_same(left, right):
    for name in (
        "values",
        "best_entailment",
        "best_entailment_spans",
        "best_contradiction",
        "best_contradiction_spans",
    ):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for name in ("verdicts", "response_score", "label", "deciding_claim"):
        assert getattr(left, name) == getattr(right, name)


@pytest.mark.parametrize("rules", ALL_POLICIES)
@unhurried
@given(data=st.data())
def test_a_batch_scores_every_audit_as_if_alone(grouped, rules, data):
    batch = data.draw(audits(grouped))
    together = score_audits(batch, rules)
    assert len(together) == len(batch)
    for number, audit in enumerate(batch):
        alone = score_audit(audit.matrix, audit.flagged, audit.chunks, rules)
        assert_same(together.audit(number), alone)


@pytest.mark.parametrize("rules", ALL_POLICIES)
@unhurried
@given(data=st.data())
def test_evidence_is_what_a_plain_loop_finds(grouped, rules, data):
    for audit in data.draw(audits(grouped)):
        result = score_audit(audit.matrix, audit.flagged, audit.chunks, rules)
        mask = (
            audit.chunks.finest_span_mask()
            if rules.aggregation == "row-max"
            else audit.chunks.span_mask(rules.granularities)
        )
        for claim in range(audit.matrix.n_claims):
            for probabilities, best, span in (
                (audit.matrix.entailment, result.best_entailment, result.best_entailment_spans),
                (
                    audit.matrix.contradiction,
                    result.best_contradiction,
                    result.best_contradiction_spans,
                ),
            ):
                row = np.where(mask, probabilities[claim], np.float32(NAN))
                assert span[claim] == np.nanargmax(row)
                assert best[claim] == np.nanmax(row)


@pytest.mark.parametrize("rules", ALL_POLICIES)
@unhurried
@given(data=st.data())
def test_the_order_of_claims_never_matters(grouped, rules, data):
    audit = data.draw(audits(grouped))[0]
    order = np.array(data.draw(st.permutations(range(audit.matrix.n_claims))), dtype=np.int64)
    matrix = ProbabilityMatrix(
        audit.matrix.entailment[order],
        audit.matrix.neutral[order],
        audit.matrix.contradiction[order],
    )
    before = score_audit(audit.matrix, audit.flagged, audit.chunks, rules)
    after = score_audit(matrix, audit.flagged[order], audit.chunks, rules)
    assert after.response_score == before.response_score
    np.testing.assert_array_equal(after.values, before.values[order])
    assert after.verdict_counts == before.verdict_counts


def test_a_bad_audit_in_a_batch_is_named(matrix, one_chunk_each):
    good = ScoringInput(matrix([[0.5]], [[0.1]]), np.zeros(1, dtype=bool), one_chunk_each(1))
    bad = ScoringInput(matrix([[NAN]], [[NAN]]), np.zeros(1, dtype=bool), one_chunk_each(1))
    with pytest.raises(VerificationError, match="audit 2, claim 0"):
        score_audits([good, good, bad], PAPER)
