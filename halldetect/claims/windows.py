"""The stretches of a response that an extractor sees at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halldetect.claims.statements import Statement
from halldetect.spans import Span

CLAIMS_PER_SENTENCE = 4  # paper, Phase I: the cap is min(10, 4 * n_sent)
LARGEST_CAP = 10
# Two to three claims a sentence are common: with four sentences the cap of ten seldom binds.
LARGEST_WINDOW_SENTENCES = 4
# About 300 tokens: what comes back fits the paper's 512 new tokens with room for repeats.
LARGEST_WINDOW_CHARACTERS = 1_200


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive statements of a response.

    Parameters
    ----------
    text : str
        What the extractor is shown: the checkable statements, one a line.
    span : Span
        From the first of them to the last, in the raw response.
    statements : range
        Their indices; those between them that are not checkable are in the range, not in `text`.
    cap : int
        Largest number of claims to ask for.
    """

    text: str
    span: Span
    statements: range
    cap: int


def claim_cap(sentences: int) -> int:
    """Return the largest number of claims for so many sentences (paper, Phase I)."""
    return min(LARGEST_CAP, CLAIMS_PER_SENTENCE * sentences)


def windows_of(statements: Sequence[Statement]) -> list[Window]:
    """Group the checkable statements, in order, into windows of whole statements.

    A statement longer than a window is in none: no small model copies it whole, and coverage
    audits it as it stands.
    """
    windows: list[Window] = []
    group: list[int] = []
    length = 0
    for position, statement in enumerate(statements):
        size = len(statement.text)
        if statement.reason is not None or size > LARGEST_WINDOW_CHARACTERS:
            continue
        is_full = len(group) == LARGEST_WINDOW_SENTENCES
        if group and (is_full or length + size > LARGEST_WINDOW_CHARACTERS):
            windows.append(_window(statements, group))
            group, length = [], 0
        group.append(position)
        length += size
    if group:
        windows.append(_window(statements, group))
    return windows


def _window(statements: Sequence[Statement], group: Sequence[int]) -> Window:
    return Window(
        text="\n".join(statements[position].text for position in group),
        span=Span(statements[group[0]].span.start, statements[group[-1]].span.end),
        statements=range(group[0], group[-1] + 1),
        cap=claim_cap(len(group)),
    )
