"""The units of a response that are audited or recorded: sentences, less their disclaimers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from halldetect.claims.checkable import is_lead_in, plain_reason
from halldetect.claims.meaning_words import word_set
from halldetect.claims.model import UnauditedReason
from halldetect.claims.refusals import is_refusal, may_refuse
from halldetect.spans import Span
from halldetect.text.sentences import Sentence, SentenceKind
from halldetect.text.words import clean_text, words_of

REPLACEMENT = "\ufffd"

_LONGEST_DIVIDED = 1_200  # characters; a longer sentence is audited whole, in linear time
_STRONG = (
    r"(?:but|however|yet|although|though|while|whereas|nevertheless|nonetheless"
    r"|aber|jedoch|mais|pero|mas|maar)"
)
# A conjunction opens a clause after punctuation; a few do so without any.
_STRONG_BREAK = re.compile(
    rf"\s*(?:[,;:—–]+|\s-\s)\s*(?:and\s+)?{_STRONG}\b,?\s*|\s*;\s*|\s+[—–]\s*"
    r"|(?<!nothing)(?<!anything)(?<!all)\s+(?:but|although|however|whereas)\b,?\s+",
    re.IGNORECASE,
)
_WEAK_BREAK = re.compile(r"\s*[,:]\s*(?:(?:and|or|so|because|since|as)\s+)?", re.IGNORECASE)
_NOT_ASSERTED = re.compile(
    r"(?:if|whether|which|who|whose|where|when|why|how|as|according|based|given|in|on|at|from|for"
    r"|since|after|before|despite|unfortunately|sorry|nor)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:please|feel free|let me|i can|i could|i'd be|i would be|i will|i'll)\b", re.IGNORECASE
)
_FINITE = word_set("is are was were has have had will would can could did does do may might must")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the response, or a part of one beside a disclaimer.

    Parameters
    ----------
    span : Span
        Where it stands in the raw response.
    kind : SentenceKind
        Layout of its sentence.
    text : str
        What it says, markup removed; the cells of a table row joined by commas.
    reason : UnauditedReason or None
        Why it is not checkable; None when it is an assertion.
    """

    span: Span
    kind: SentenceKind
    text: str
    reason: UnauditedReason | None


def statements_of(response: str, sentences: Sequence[Sentence]) -> tuple[Statement, ...]:
    """Break `response` into statements and tell which can be checked.

    A disclaimer ("I have no details on the method, but the pilot cut queues by 40 percent") is
    taken off the assertion beside it; each gets a span of its own. A table row is one statement;
    the row above a table's rule is a header and counts as a lead-in.

    Returns
    -------
    tuple of Statement
        In order; every non-space character of `response` is in one, save conjunctions and
        punctuation between the parts of a divided sentence.
    """
    statements: list[Statement] = []
    for position, sentence in enumerate(sentences):
        following = sentences[position + 1].kind if position + 1 < len(sentences) else None
        statements.extend(_statements_of_sentence(response, sentence, following))
    return tuple(statements)


def _statements_of_sentence(
    response: str, sentence: Sentence, following: SentenceKind | None
) -> Iterator[Statement]:
    raw = sentence.span.of(response)
    if sentence.kind is SentenceKind.CODE:
        yield Statement(sentence.span, sentence.kind, raw, UnauditedReason.CODE)
    elif sentence.kind is SentenceKind.TABLE_RULE:
        yield Statement(sentence.span, sentence.kind, raw, UnauditedReason.TABLE_RULE)
    elif sentence.kind is SentenceKind.TABLE_ROW:
        text = _row_text(raw)
        reason = None if words_of(text) else UnauditedReason.NO_WORDS
        if reason is None and following is SentenceKind.TABLE_RULE:
            reason = UnauditedReason.LEAD_IN
        yield Statement(sentence.span, sentence.kind, text, reason)
    else:
        yield from _flowing_statements(response, sentence, following)


def _row_text(raw: str) -> str:
    cells = (spoken(cell) for cell in raw.strip().strip("|").split("|"))
    return ", ".join(cell for cell in cells if cell)


def spoken(raw: str) -> str:
    """Return what `raw` says: cleaned, and without characters that could not be decoded."""
    return " ".join(clean_text(raw.replace(REPLACEMENT, " ")).split())


def _flowing_statements(
    response: str, sentence: Sentence, following: SentenceKind | None
) -> Iterator[Statement]:
    raw = sentence.span.of(response)
    text = spoken(raw)
    reason = plain_reason(raw, text, sentence.kind)
    if reason is None and is_lead_in(raw, text, following):
        reason = UnauditedReason.LEAD_IN
    if reason is not None:
        yield Statement(sentence.span, sentence.kind, text, reason)
        return
    for span in _parts_around_disclaimers(response, sentence.span):
        part = spoken(span.of(response))
        if is_refusal(part):
            reason = UnauditedReason.REFUSAL
        else:
            reason = plain_reason(span.of(response), part, sentence.kind)
        yield Statement(span, sentence.kind, part, reason)


def _parts_around_disclaimers(response: str, span: Span) -> list[Span]:
    """Cut `span` so that each part is a disclaimer or an assertion, never both."""
    if span.end - span.start > _LONGEST_DIVIDED or not may_refuse(span.of(response)):
        return [span]
    clauses = _clauses(response, span)
    refused = [is_refusal(spoken(clause.of(response))) for clause in clauses]
    if not any(refused) or all(refused):
        return [span]
    runs: list[tuple[Span, bool]] = []
    for clause, refuses in zip(clauses, refused, strict=True):
        if runs and runs[-1][1] == refuses:
            runs[-1] = (Span(runs[-1][0].start, clause.end), refuses)
        else:
            runs.append((clause, refuses))
    parts = [run for run, _ in runs]
    # A part that reads otherwise as a whole than clause by clause is left undivided.
    reads_alike = all(is_refusal(spoken(run.of(response))) == refuses for run, refuses in runs)
    return parts if reads_alike else [span]


def _clauses(response: str, span: Span) -> list[Span]:
    """Cut at the boundaries that can stand between a disclaimer and an assertion."""
    clauses: list[Span] = []
    for strong in _cut(response, span, _STRONG_BREAK):
        pending = strong
        weak_parts = _cut(response, strong, _WEAK_BREAK)
        for position, part in enumerate(weak_parts[1:], start=1):
            before = Span(pending.start, weak_parts[position - 1].end)
            refuses_before = is_refusal(spoken(before.of(response)))
            after = Span(part.start, strong.end).of(response)
            if (refuses_before and _asserts(after)) or (
                _asserts(before.of(response)) and is_refusal(spoken(part.of(response)))
            ):
                clauses.append(before)
                pending = Span(part.start, strong.end)
        clauses.append(pending)
    return _without_fragments(response, clauses)


def _without_fragments(response: str, clauses: list[Span]) -> list[Span]:
    """Join to its neighbour what is no clause: one word, or an offer to help."""
    joined: list[Span] = []
    for clause in clauses:
        text = spoken(clause.of(response))
        is_fragment = _is_one_word(text) or _OFFER.match(text) is not None
        if joined and (is_fragment or _is_one_word(spoken(joined[-1].of(response)))):
            joined[-1] = Span(joined[-1].start, clause.end)
        else:
            joined.append(clause)
    return joined


def _is_one_word(text: str) -> bool:
    return len(words_of(text)) < 2


def _cut(response: str, span: Span, breaks: re.Pattern[str]) -> list[Span]:
    parts: list[Span] = []
    start = span.start
    for match in breaks.finditer(response, span.start, span.end):
        if match.start() > start and match.end() < span.end:
            parts.append(Span(start, match.start()))
            start = match.end()
    parts.append(Span(start, span.end))
    return parts


def _asserts(clause: str) -> bool:
    """Tell whether a part set off by a mere comma says something of its own."""
    if _NOT_ASSERTED.match(clause.strip()):
        return False
    words = words_of(clause)
    has_verb = any(word.text in _FINITE for word in words)
    has_number = any(word.number is not None for word in words)
    return len(words) >= 4 and (has_verb or has_number) and not is_refusal(spoken(clause))
