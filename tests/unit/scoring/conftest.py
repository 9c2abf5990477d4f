"""Hand-made chunk structures and matrices."""

import math

import numpy as np
import pytest

from halldetect.scoring.matrix import ChunkSpans, ProbabilityMatrix


def group_sentences(n_sentences, granularities=(1, 2, 4, 8, 16)):
    """Return the distinct spans (first, past-last sentence) and the chunks made of them."""
    spans, granularity, indices = {}, [], []
    for pieces in granularities:
        size = math.ceil(n_sentences / pieces)
        for first in range(0, n_sentences, size):
            span = (first, min(first + size, n_sentences))
            indices.append(spans.setdefault(span, len(spans)))
            granularity.append(pieces)
    offsets = np.arange(len(indices) + 1)
    return spans, ChunkSpans(np.array(granularity), offsets, np.array(indices), len(spans))


def matrix_of(entailment, contradiction):
    """Return a matrix whose neutral probabilities are what the others leave."""
    entailed = np.array(entailment, dtype=np.float32)
    contradicted = np.array(contradiction, dtype=np.float32)
    return ProbabilityMatrix(entailed, 1 - entailed - contradicted, contradicted)


@pytest.fixture(scope="session")
def grouped():
    return group_sentences


@pytest.fixture(scope="session")
def matrix():
    return matrix_of


@pytest.fixture(scope="session")
def one_chunk_each():
    """Return a function: n spans that are each a chunk of the finest granularity, 1."""
    return lambda n_spans: ChunkSpans(
        np.ones(n_spans, dtype=np.int64), np.arange(n_spans + 1), np.arange(n_spans), n_spans
    )
