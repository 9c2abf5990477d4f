from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halldetect.context.library import ContextLibrary, build_context_library, chunk_sentences
from halldetect.context.windows import SourceTokens
from halldetect.spans import Span


def source_of(token_counts: list[int]) -> tuple[list[Span], SourceTokens]:
    """Make a source whose every token is one letter and whose sentences stand a space apart."""
    sentences, starts = [], []
    position = 0
    for count in token_counts:
        sentences.append(Span(position, position + 2 * count - 1))
        starts.extend(range(position, position + 2 * count, 2))
        position += 2 * count
    first = np.array(starts, dtype=np.int32)
    tokens = SourceTokens(
        ids=np.arange(len(first), dtype=np.int32),
        starts=first,
        ends=first + 1,
        sentence_offsets=np.cumsum([0, *token_counts], dtype=np.int64),
        unknown=0,
    )
    return sentences, tokens


def library_of(token_counts: list[int], room: int) -> ContextLibrary:
    return build_context_library(*source_of(token_counts), room)


def test_eight_sentences_give_23_chunks_and_15_spans() -> None:
    library = library_of([5] * 8, room=100)
    assert len(library.chunks) == 23
    assert len(library.spans) == 15
    assert library.granularities == (1, 2, 4, 8, 16)
    first_chunks = [chunk_sentences(8, granularity)[0] for granularity in (1, 2, 4, 8, 16)]
    assert [last - first for first, last in first_chunks] == [8, 4, 2, 1, 1]


def test_granularities_double_until_the_finest_chunks_fit() -> None:
    library = library_of([10] * 200, room=35)
    assert library.granularities == (1, 2, 4, 8, 16, 32, 64, 128)
    finest = [n for n, chunk in enumerate(library.chunks) if chunk.granularity == 128]
    assert all(len(library.spans_of_chunk(n)) == 1 for n in finest)


def test_a_sentence_that_does_not_fit_is_windowed_by_tokens() -> None:
    library = library_of([3, 500, 3], room=40)
    lengths = [r.end - r.start for r in library.token_ranges]
    assert max(lengths) <= 40
    assert library.windowed_chunks > 0
    covered = set()
    for token_range in library.token_ranges:
        covered.update(range(token_range.start, token_range.end))
    assert covered == set(range(506))


def test_a_long_source_is_read_a_few_times_and_not_once_a_granularity() -> None:
    library = library_of([20] * 5000, room=400)
    read = sum(r.end - r.start for r in library.token_ranges)
    assert len(library.granularities) > 8
    assert read < 5 * 100_000


def test_neighbouring_windows_overlap() -> None:
    library = library_of([10] * 20, room=100)
    whole = library.spans_of_chunk(0)
    ranges = [library.token_ranges[number] for number in whole]
    assert all(b.start < a.end for a, b in pairwise(ranges))


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=80),
    st.integers(8, 50),
)
def test_every_chunk_is_covered_exactly_by_spans_that_fit(counts: list[int], room: int) -> None:
    sentences, tokens = source_of(counts)
    library = build_context_library(sentences, tokens, room)
    assert len(set(library.spans)) == len(library.spans)
    assert list(library.spans) == sorted(library.spans)
    for number, chunk in enumerate(library.chunks):
        first, last = chunk_sentences(len(counts), chunk.granularity)[chunk.index]
        wanted = set(range(tokens.sentence_offsets[first], tokens.sentence_offsets[last]))
        covered = set()
        for span in library.spans_of_chunk(number):
            token_range = library.token_ranges[span]
            assert 0 < token_range.end - token_range.start <= room
            covered.update(range(token_range.start, token_range.end))
        assert covered == wanted


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(8, 50))
def test_a_span_holds_the_characters_of_its_tokens(counts: list[int], room: int) -> None:
    library = library_of(counts, room)
    for span, token_range in zip(library.spans, library.token_ranges, strict=True):
        assert span.start == library.tokens.starts[token_range.start]
        assert span.end == library.tokens.ends[token_range.end - 1]


@pytest.mark.parametrize(("count", "granularity", "sizes"), [(1, 16, [1]), (10, 4, [3, 3, 3, 1])])
def test_chunks_are_consecutive_groups_of_equal_size(
    count: int, granularity: int, sizes: list[int]
) -> None:
    assert [last - first for first, last in chunk_sentences(count, granularity)] == sizes
