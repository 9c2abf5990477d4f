import numpy as np
import pytest

from halldetect.errors import PolicyError, VerificationError
from halldetect.scoring.cells import cells_of
from halldetect.scoring.matrix import ChunkSpans, ProbabilityMatrix, ScoringInput

NAN = float("nan")


def test_eight_sentences_make_23_chunks_of_15_spans(grouped):
    spans, chunks = grouped(8)
    assert len(chunks.granularity) == 23
    assert chunks.n_spans == len(spans) == 15


def test_a_mask_holds_the_spans_of_its_granularities(grouped):
    spans, chunks = grouped(8)
    used = {span for span, number in spans.items() if chunks.span_mask((1, 4))[number]}
    assert used == {(0, 8), (0, 2), (2, 4), (4, 6), (6, 8)}
    assert chunks.span_mask(None).all()
    np.testing.assert_array_equal(chunks.span_mask((16,)), chunks.span_mask((8,)))


def test_granularities_that_a_source_lacks_are_passed_over_unless_it_has_none(grouped):
    _, chunks = grouped(8)
    np.testing.assert_array_equal(chunks.span_mask((4, 64)), chunks.span_mask((4,)))
    with pytest.raises(PolicyError, match=r"granularities 32, 64, .* it has 1, 2, 4, 8, 16"):
        chunks.span_mask((64, 32))


def test_chunks_tell_whether_they_are_of_any_of_some_granularities(grouped):
    _, chunks = grouped(8)
    assert chunks.has_any([64, 4])
    assert not chunks.has_any([64, 32])
    assert not chunks.has_any([])


def test_the_finest_chunks_may_hold_several_spans():
    chunks = ChunkSpans(np.array([1, 2, 2]), np.array([0, 1, 3, 5]), np.array([0, 1, 2, 2, 3]), 4)
    assert chunks.finest_span_mask().tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("granularity", "offsets", "indices"),
    [
        ([1], [0, 2], [0, 2]),
        ([1], [0, 1], [-1]),
        ([1, 2], [0, 1], [0]),
        ([1, 2], [0, 1, 1], [0]),
        ([1], [0, 1], [0, 1]),
        ([1], [1, 2], [0, 1]),
    ],
)
def test_chunks_that_do_not_fit_together_are_refused(granularity, offsets, indices):
    with pytest.raises(ValueError, match="chunk"):
        ChunkSpans(np.array(granularity), np.array(offsets), np.array(indices), 2)


def test_arrays_of_different_shape_are_refused():
    full, short = np.full((2, 3), 1 / 3, np.float32), np.full((2, 2), 1 / 3, np.float32)
    with pytest.raises(VerificationError, match=r"\(2, 3\), \(2, 2\), \(2, 3\)"):
        ProbabilityMatrix(full, short, full)


@pytest.mark.parametrize("array", [np.ones(3, np.float32), np.ones((1, 3), np.float64)])
def test_only_float32_matrices_are_taken(array):
    with pytest.raises(VerificationError, match="float32 matrices"):
        ProbabilityMatrix(array, array, array)


def test_flags_and_spans_must_match_the_matrix(matrix, one_chunk_each):
    two_by_two = matrix([[0.1, 0.2]] * 2, [[0.1, 0.2]] * 2)
    with pytest.raises(ValueError, match="2 claims need as many flags"):
        ScoringInput(two_by_two, np.zeros(1, dtype=bool), one_chunk_each(2))
    with pytest.raises(ValueError, match="2 spans, the chunks 3"):
        ScoringInput(two_by_two, np.zeros(2, dtype=bool), one_chunk_each(3))


@pytest.mark.parametrize(
    "triple",
    [
        (0.5, 0.5, 0.5),
        (0.1, 0.1, 0.1),
        (NAN, 0.5, 0.5),
        (0.5, NAN, NAN),
        (-0.1, 0.6, 0.5),
        (1.2, -0.1, -0.1),
        (float("inf"), 0.0, 0.0),
    ],
)
def test_a_cell_that_is_no_distribution_is_named(matrix, one_chunk_each, triple):
    good = matrix([[0.1, 0.2, 0.3]], [[0.1, 0.2, 0.3]])
    arrays = [np.full((2, 3), value, np.float32) for value in (0.25, 0.5, 0.25)]
    for array, value in zip(arrays, triple, strict=True):
        array[1, 2] = value
    audits = [
        ScoringInput(good, np.zeros(1, dtype=bool), one_chunk_each(3)),
        ScoringInput(ProbabilityMatrix(*arrays), np.zeros(2, dtype=bool), one_chunk_each(3)),
    ]
    with pytest.raises(VerificationError, match="audit 1, claim 1, span 2: E, N, C = "):
        cells_of(audits)


def test_rounding_of_a_sum_is_forgiven(one_chunk_each):
    arrays = [np.full((1, 1), value, np.float32) for value in (0.3334, 0.3334, 0.3334)]
    cells_of([ScoringInput(ProbabilityMatrix(*arrays), np.zeros(1, dtype=bool), one_chunk_each(1))])


@pytest.mark.parametrize("n_spans", [0, 3])
def test_a_claim_without_any_scored_span_is_named(matrix, one_chunk_each, n_spans):
    unscored = matrix(np.full((2, n_spans), NAN), np.full((2, n_spans), NAN))
    audit = ScoringInput(unscored, np.zeros(2, dtype=bool), one_chunk_each(n_spans))
    with pytest.raises(VerificationError, match="audit 0, claim 0 was scored against no span"):
        cells_of([audit])
