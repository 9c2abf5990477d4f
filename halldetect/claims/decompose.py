"""Phase I of the method (arXiv 2608.05823): from a response to its atomic claims."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from halldetect.claims.antecedents import points_back, sentence_before
from halldetect.claims.copy_check import CopyCheck, Placement
from halldetect.claims.coverage import uncovered
from halldetect.claims.extractor import ClaimExtractor, Extraction
from halldetect.claims.generation_lines import parse_lines
from halldetect.claims.long_claims import PlacedText, pieces_of
from halldetect.claims.model import (
    Claim,
    ClaimOrigin,
    Decomposition,
    ExtractionMode,
    FinishReason,
    Generation,
    RejectedClaim,
    UnauditedReason,
    UnauditedSentence,
)
from halldetect.claims.statements import Statement, statements_of
from halldetect.claims.windows import Window, claim_cap, windows_of
from halldetect.spans import Span
from halldetect.text.flags import has_date, has_name, has_number
from halldetect.text.sentences import split_sentences
from halldetect.text.words import words_of


@dataclass(frozen=True, slots=True)
class _Draft:
    """A claim before it is cut to the encoder's length."""

    placed: PlacedText
    origin: ClaimOrigin
    statement: int | None


@dataclass(slots=True)
class _Proposals:
    """What all calls of the extractor came to."""

    drafts: list[_Draft]
    placements: list[Placement]
    rejected: list[RejectedClaim]
    generations: list[Generation]


def decompose(
    response: str,
    extractor: ClaimExtractor,
    *,
    count_tokens: Callable[[str], int],
    max_tokens: int = 96,
    mode: ExtractionMode = ExtractionMode.COVERED,
    max_sentences: int = 50_000,
    max_seconds: float = inf,
) -> Decomposition:
    """Break `response` into claims, and record whatever is not audited.

    Parameters
    ----------
    response : str
        The generated answer, raw. Empty or without an assertion: no claims, and the extractor is
        not called.
    extractor : ClaimExtractor
        Proposes claims. It sees the response only.
    count_tokens : callable
        Number of NLI tokens of a text.
    max_tokens : int
        Tokens kept for a claim beside its evidence; a longer claim becomes several, numbered by
        `Claim.part`.
    mode : ExtractionMode
        ``covered``: windows, copy check, coverage. ``paper``: one pass over the whole response,
        every distinct line a claim, no repair; a line that no one sentence asserts gets the span
        of the sentence it shares most words with, or of the whole response. An extractor without
        a language model gives one claim a statement in either mode.
    max_sentences : int
        Largest number of sentences of the response.
    max_seconds : float
        How long the extractor may take over the whole response. What it has not read by then is
        audited sentence by sentence, in either mode, and `Decomposition.generations` says so
        (`FinishReason.TIME`).

    Returns
    -------
    Decomposition
        Claims in the order (span, origin, text); each sentence is in a claim or in `unaudited`.

    Raises
    ------
    LimitError
        When the response has more than `max_sentences` sentences.
    """
    sentences = split_sentences(response, max_sentences)
    statements = statements_of(response, sentences)
    check = CopyCheck(response, statements)
    if mode is ExtractionMode.PAPER:
        windows = _whole(response, statements, len(sentences))
    else:
        windows = windows_of(statements)
    ends_at = time.monotonic() + max_seconds
    proposals = _propose(extractor, windows, check, statements, mode, ends_at)
    is_repaired = (
        mode is ExtractionMode.COVERED
        or _without_model(proposals.generations)
        or any(call.finish is FinishReason.TIME for call in proposals.generations)
    )
    added: list[int] = []
    if is_repaired:
        words = [check.tokens(position) for position in range(len(statements))]
        added = uncovered(statements, words, proposals.placements)
    drafts = proposals.drafts + [_sentence_draft(response, statements, i) for i in added]
    claims = [
        claim
        for draft in drafts
        for claim in _claims_of(draft, statements, count_tokens, max_tokens)
    ]
    claims.sort(key=lambda claim: (claim.span, claim.origin, claim.part, claim.text))
    return Decomposition(
        claims=tuple(claims),
        rejected=tuple(proposals.rejected),
        unaudited=tuple(_unaudited(statements, {draft.statement for draft in drafts})),
        generations=tuple(proposals.generations),
    )


def _whole(response: str, statements: Sequence[Statement], sentences: int) -> list[Window]:
    """Return the one window of mode ``paper``: the response as it is, if it asserts anything."""
    if all(statement.reason is not None for statement in statements):
        return []
    span = Span(statements[0].span.start, statements[-1].span.end)
    return [Window(response, span, range(len(statements)), claim_cap(sentences))]


def _without_model(generations: Sequence[Generation]) -> bool:
    return all(generation.finish is FinishReason.NONE for generation in generations)


def _propose(
    extractor: ClaimExtractor,
    windows: Sequence[Window],
    check: CopyCheck,
    statements: Sequence[Statement],
    mode: ExtractionMode,
    ends_at: float,
) -> _Proposals:
    proposals = _Proposals([], [], [], [])
    for window in windows:
        if time.monotonic() < ends_at:
            extraction = extractor.extract(window.text, window.cap, ends_at)
        else:
            extraction = Extraction("", FinishReason.TIME)
        proposed = parse_lines(extraction, window.cap)
        proposals.generations.append(
            Generation(
                window=window.span,
                finish=extraction.finish,
                parsed=proposed.parsed,
                prompt_tokens=extraction.prompt_tokens,
                output_tokens=extraction.output_tokens,
            )
        )
        proposals.rejected.extend(proposed.rejected)
        for line in proposed.lines:
            outcome = check.place(line, window.statements)
            if isinstance(outcome, Placement):
                placed = PlacedText(line, outcome.span, outcome.words)
                proposals.placements.append(outcome)
                proposals.drafts.append(_Draft(placed, ClaimOrigin.LLM, outcome.statement))
            elif mode is ExtractionMode.PAPER:
                proposals.drafts.append(_unplaced_draft(line, window, check, statements))
            else:
                proposals.rejected.append(RejectedClaim(line, *outcome))
    return proposals


def _unplaced_draft(
    line: str, window: Window, check: CopyCheck, statements: Sequence[Statement]
) -> _Draft:
    nearest = check.nearest(line)
    span = window.span if nearest is None else statements[nearest].span
    return _Draft(PlacedText(line, span, ()), ClaimOrigin.LLM, nearest)


def _sentence_draft(response: str, statements: Sequence[Statement], position: int) -> _Draft:
    statement = statements[position]
    raw, said = words_of(statement.span.of(response)), words_of(statement.text)
    words: tuple[tuple[int, Span], ...] = ()
    if [word.text for word in raw] == [word.text for word in said]:
        offset = statement.span.start
        words = tuple(
            (clean.span.start, Span(word.span.start + offset, word.span.end + offset))
            for clean, word in zip(said, raw, strict=True)
        )
    return _Draft(PlacedText(statement.text, statement.span, words), ClaimOrigin.SENTENCE, position)


def _claims_of(
    draft: _Draft,
    statements: Sequence[Statement],
    count_tokens: Callable[[str], int],
    max_tokens: int,
) -> Iterator[Claim]:
    pieces = pieces_of(draft.placed, count_tokens, max_tokens)
    for number, piece in enumerate(pieces, start=1):
        antecedent = None
        if draft.statement is not None and number == 1 and points_back(piece.text):
            antecedent = sentence_before(statements, draft.statement)
        yield Claim(
            text=piece.text,
            span=piece.span,
            origin=draft.origin,
            has_name=has_name(piece.text),
            has_number=has_number(piece.text),
            has_date=has_date(piece.text),
            antecedent=antecedent,
            part=0 if len(pieces) == 1 else number,
        )


def _unaudited(
    statements: Sequence[Statement], carried: set[int | None]
) -> Iterator[UnauditedSentence]:
    for position, statement in enumerate(statements):
        if position not in carried:
            reason = statement.reason or UnauditedReason.NOT_EXTRACTED
            yield UnauditedSentence(statement.span, reason)
