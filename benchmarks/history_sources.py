"""Invented sources, and claims about them, of the length and shape that real ones have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from halldetect.context.library import BASE_GRANULARITIES, chunk_sentences
from halldetect.scoring.matrix import ChunkSpans

# Sentences of a source: each gives 22 to 31 chunks, and the longest do not fit an encoder whole.
SENTENCE_COUNTS = (8, 10, 12, 16, 18, 20, 24)
SENTENCE_SHARES = (0.15, 0.1, 0.1, 0.05, 0.3, 0.2, 0.1)
_WHOLE_SENTENCES = 17  # more do not fit, and are covered by two windows

_PEOPLE = ["Lena Ortiz", "David Hsu", "Amara Cole", "Jonas Weber", "Priya Nair", "Tom Aldridge"]
_BODIES = ["the harbour office", "the city council", "the river trust", "the school board"]
_ACTIONS = [
    ("approved", "new bus shelters"),
    ("closed", "footbridges over the canal"),
    ("counted", "visitors to the museum"),
    ("bought", "electric vans for the fleet"),
    ("repaired", "street lamps near the station"),
    ("trained", "volunteers for the flood watch"),
    ("planted", "trees along the ring road"),
    ("moved", "files to the regional archive"),
]
_TAILS = [
    "after a long debate that several residents had followed from the gallery",
    "although the budget for the year had already been spent on other repairs",
    "because the previous contract ended and no other bidder came forward in time",
    "while work on the neighbouring site went on without any further interruption",
    "which the annual report describes as the largest effort of its kind so far",
]
_YEARS = range(2015, 2026)


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence of a source, and what a response may make of it.

    Parameters
    ----------
    sentence : str
        As the source says it.
    claims : tuple of str
        Indexed by `ClaimKind`: the same, with another number, and something else altogether.
    has_name, has_date : bool
        Flags of the claims, all of which have a number.
    """

    sentence: str
    claims: tuple[str, str, str]
    has_name: bool
    has_date: bool


class ClaimKind:
    """Columns of `Fact.claims`."""

    TRUE = 0
    WRONG_NUMBER = 1
    INVENTED = 2


@dataclass(frozen=True, eq=False)
class Structure:
    """How sources of one number of sentences fall into spans and chunks.

    Parameters
    ----------
    sentences : int
        Of the source.
    spans : list of (int, int)
        Half-open ranges of sentences, in reading order.
    chunks : ChunkSpans
        As scoring reads them.
    holds : bool array, shape (sentences, spans)
        Whether a span holds a sentence.
    windowed_chunks : int
        Chunks of more than one span.
    """

    sentences: int
    spans: list[tuple[int, int]]
    chunks: ChunkSpans
    holds: NDArray[np.bool_]
    windowed_chunks: int


@cache
def facts() -> list[Fact]:
    """Return every combination of who did what."""
    random = Random(11)
    found = []
    whos = [(name, True) for name in _PEOPLE] + [(body, False) for body in _BODIES]
    for (who, named), (action, what), tail, year in itertools.product(
        whos, _ACTIONS, _TAILS, (None, *_YEARS)
    ):
        number = random.randint(3, 900)
        when = "" if year is None else f" in {year}"
        other = f"{who} {action} {number + random.randint(1, 90)} {what}{when}"
        invented = f"{who} sold {random.randint(3, 900)} {what} to a private investor{when}"
        claim = f"{who} {action} {number} {what}{when}"
        found.append(
            Fact(
                sentence=f"{_capital(claim)} {tail}.",
                claims=(f"{_capital(claim)}.", f"{_capital(other)}.", f"{_capital(invented)}."),
                has_name=named,
                has_date=year is not None,
            )
        )
    return found


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


@cache
def structure_of(sentences: int) -> Structure:
    """Cut a source of so many sentences the way an audit does."""
    members: list[list[tuple[int, int]]] = []
    granularity: list[int] = []
    for m in BASE_GRANULARITIES:
        for first, last in chunk_sentences(sentences, m):
            granularity.append(m)
            members.append(_windows(first, last))
    spans = sorted({span for windows in members for span in windows})
    number = {span: index for index, span in enumerate(spans)}
    holds = np.array(
        [[first <= sentence < last for first, last in spans] for sentence in range(sentences)]
    )
    chunks = ChunkSpans(
        granularity=np.array(granularity),
        offsets=np.cumsum([0, *map(len, members)]),
        indices=np.array([number[span] for windows in members for span in windows]),
        n_spans=len(spans),
    )
    windowed = sum(len(windows) > 1 for windows in members)
    return Structure(sentences, spans, chunks, holds, windowed)


def _windows(first: int, last: int) -> list[tuple[int, int]]:
    if last - first <= _WHOLE_SENTENCES:
        return [(first, last)]
    overlap = (last - first) // 4
    middle = (first + last) // 2
    return [(first, middle + overlap), (middle - overlap, last)]


def source_text(number: int, fact_numbers: NDArray[np.int64]) -> tuple[str, list[int], list[int]]:
    """Write a source, unlike any other, and say where its sentences start and end."""
    known = facts()
    sentences = [f"Report {number} sums up what happened in the district."]
    sentences += [known[fact].sentence for fact in fact_numbers]
    starts, ends = [], []
    at = 0
    for sentence in sentences:
        starts.append(at)
        ends.append(at + len(sentence))
        at += len(sentence) + 1
    return " ".join(sentences), starts, ends
