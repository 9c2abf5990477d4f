"""Whether a proposed claim keeps the negations and qualifiers of the clause it was taken from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halldetect.claims.meaning_words import CONDITIONS, QUALIFIERS, QUANTIFIERS
from halldetect.claims.model import RejectionReason
from halldetect.claims.tokens import Break, Token

Fault = tuple[RejectionReason, str]
"""Why a line is not what a sentence asserts, and the words that show it."""


def segment_of(sentence: Sequence[Token], first: int, last: int) -> range:
    """Return the indices of the words that govern what stands from `first` to `last`.

    To the right the segment ends with the clause. To the left it passes over plain commas, since
    a negation reaches over a list ("did not fund, support or approve"), and ends at stronger
    breaks.
    """
    start = first
    while start > 0 and sentence[start].before is not Break.CLAUSE:
        start -= 1
    end = last + 1
    while end < len(sentence) and sentence[end].before is Break.NONE:
        end += 1
    return range(start, end)


def polarity_fault(
    line: Sequence[Token], sentence: Sequence[Token], aligned: Mapping[int, int]
) -> Fault | None:
    """Compare negations, then qualifiers.

    Parameters
    ----------
    line, sentence : sequence of Token
        The proposed claim and the sentence it is held against.
    aligned : mapping of int to int
        Position in `line` to position in `sentence`, for all words but negations and free words;
        increasing.

    Returns
    -------
    tuple or None
        ``negation`` when a negation of either side has no partner that stands before the same
        next content word; ``qualifier`` when a modal, hedge, condition or quantifier of the
        sentence that governs the claim is not in it; else None.
    """
    segment = segment_of(sentence, min(aligned.values()), max(aligned.values()))
    unmatched = [*_negations(sentence, segment, None)]
    for negation in _negations(line, range(len(line)), aligned):
        if negation not in unmatched:
            return RejectionReason.NEGATION, f'"{negation[0]}" is added'
        unmatched.remove(negation)
    if unmatched:
        return RejectionReason.NEGATION, f'"{unmatched[0][0]}" is dropped'
    return _dropped_qualifier(sentence, segment, frozenset(aligned.values()))


def _negations(
    tokens: Sequence[Token], within: range, aligned: Mapping[int, int] | None
) -> list[tuple[str, int]]:
    """Return each negation with the place, in the sentence, of the content word it precedes."""
    return [
        (tokens[position].word, _scope(tokens, position, aligned))
        for position in within
        if tokens[position].is_negation
    ]


def _scope(tokens: Sequence[Token], position: int, aligned: Mapping[int, int] | None) -> int:
    following = range(position + 1, len(tokens))
    preceding = range(position - 1, -1, -1)
    for candidates in (following, preceding):
        for other in candidates:
            if tokens[other].is_content and not tokens[other].is_negation:
                return other if aligned is None else aligned.get(other, -1)
    return -1


def _dropped_qualifier(
    sentence: Sequence[Token], segment: range, kept: frozenset[int]
) -> Fault | None:
    for position, token in enumerate(sentence):
        if position in kept:
            continue
        governs = token.word in CONDITIONS or (
            position in segment
            and (token.word in QUALIFIERS or _quantifies(sentence, position, kept))
        )
        if governs:
            return RejectionReason.QUALIFIER, f'"{token.word}" is dropped'
    return None


def _quantifies(sentence: Sequence[Token], position: int, kept: frozenset[int]) -> bool:
    if sentence[position].word not in QUANTIFIERS:
        return False
    following = (i for i in range(position + 1, len(sentence)) if sentence[i].is_content)
    return next(following, None) in kept
