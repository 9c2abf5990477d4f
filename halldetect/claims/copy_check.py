"""Whether a proposed claim is an assertion of the response, and where in it that stands.

The paper (arXiv 2608.05823, Phase I) asks the model to copy; small models do not obey, so that
each line is held against the sentences of the response. When in doubt a line is rejected: the
sentence it came from is then audited itself, and nothing is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from halldetect.claims.alignment import IndexedSentence, alignments, compared, dropped_role
from halldetect.claims.governors import dropped_governor
from halldetect.claims.meaning_words import PRONOUNS, QUALIFIERS, QUANTIFIERS
from halldetect.claims.model import RejectionReason
from halldetect.claims.negation import Fault, polarity_fault, segment_of
from halldetect.claims.statements import Statement
from halldetect.claims.tokens import Token, tokens_of
from halldetect.spans import Span

_DEPTH = {
    reason: depth
    for depth, reason in enumerate(
        (
            RejectionReason.WORD,
            RejectionReason.NUMBER,
            RejectionReason.NAME,
            RejectionReason.RECOMBINED,
            RejectionReason.ORDER,
            RejectionReason.NEGATION,
            RejectionReason.QUALIFIER,
            RejectionReason.NOT_CHECKABLE,
            RejectionReason.DUPLICATE,
        )
    )
}
"""How far a line got in a sentence before it failed; the furthest fault is reported."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an accepted line stands.

    Parameters
    ----------
    statement : int
        Index of the statement that carries it.
    tokens : frozenset of int
        Words of that statement which the line repeats.
    span : Span
        Stretch of the raw response from its first to its last word.
    words : tuple of (int, Span)
        Offset in the line and place in the response of each word found, in order.
    """

    statement: int
    tokens: frozenset[int]
    span: Span
    words: tuple[tuple[int, Span], ...]


class CopyCheck:
    """Holds proposed claims against one response.

    Remembers what it has accepted: where text repeats, an equal line takes the first place that
    is still free.

    Parameters
    ----------
    response : str
        The raw response.
    statements : sequence of Statement
        Its statements, checkable or not.
    """

    def __init__(self, response: str, statements: Sequence[Statement]) -> None:
        self._response = response
        self._statements = statements
        self._sentences = [
            IndexedSentence.of(tokens_of(s.span.of(response), s.span.start)) for s in statements
        ]
        self._used: set[tuple[str, int]] = set()

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        """Statements that have each word."""
        postings: dict[str, list[int]] = {}
        for position, sentence in enumerate(self._sentences):
            for key in sentence.places:
                postings.setdefault(key, []).append(position)
        return postings

    def tokens(self, statement: int) -> tuple[Token, ...]:
        """Return the words of a statement."""
        return self._sentences[statement].tokens

    def place(self, text: str, window: range | None = None) -> Placement | Fault:
        """Find the statement that asserts `text`.

        Parameters
        ----------
        text : str
            A proposed claim, marks stripped.
        window : range or None
            Statements the extractor saw, tried before the others; None for all.

        Returns
        -------
        Placement or tuple
            Where the line stands; or the reason for its rejection and the words that show it.
        """
        line = tokens_of(text)
        contents = [token for token in line if token.is_content and not token.is_negation]
        if len(contents) < 2 and not any(token.is_number for token in contents):
            return RejectionReason.NOT_CHECKABLE, "fewer than two words that say something"
        key = " ".join(("not " if token.is_negation else "") + token.key for token in line)
        faults: list[Fault] = []
        for statement in self._candidates(line, window):
            if (key, statement) in self._used:
                faults.append((RejectionReason.DUPLICATE, "each place of this text has its claim"))
                continue
            outcome = self._place_at(line, statement)
            if isinstance(outcome, Placement):
                self._used.add((key, statement))
                return outcome
            faults.append(outcome)
        faults.append(self._missing_everywhere(line))
        return max(faults, key=lambda fault: _DEPTH[fault[0]])

    def nearest(self, text: str) -> int | None:
        """Return the statement that shares most words with `text`, None when none shares any."""
        wanted = {token.key for token in tokens_of(text) if token.is_content}
        shared = Counter(position for key in wanted for position in self._postings.get(key, ()))
        return min(shared, key=lambda position: (-shared[position], position), default=None)

    def _candidates(self, line: Sequence[Token], window: range | None) -> Iterator[int]:
        """Yield the statements of the window, then the others that have the line's rarest word."""
        if window is None:
            window = range(len(self._sentences))
        yield from window
        postings = [self._postings.get(line[i].key, ()) for i in compared(line)]
        for statement in min(postings, key=len, default=()):
            if statement not in window:
                yield statement

    def _place_at(self, line: Sequence[Token], statement: int) -> Placement | Fault:
        sentence = self._sentences[statement]
        missing = [i for i in compared(line) if line[i].key not in sentence.places]
        if missing:
            resolved = self._resolved_pronoun(line, statement, missing)
            if resolved is None:
                return self._missing_everywhere(line)
            return self._judged(line, resolved, statement, frozenset(missing))
        faults: list[Fault] = []
        for aligned in alignments(line, sentence):
            outcome = self._judged(line, aligned, statement, frozenset())
            if isinstance(outcome, Placement):
                return outcome
            faults.append(outcome)
        another_order = (RejectionReason.ORDER, "its words stand in another order")
        return max(faults, key=lambda fault: _DEPTH[fault[0]], default=another_order)

    def _judged(
        self, line: Sequence[Token], aligned: dict[int, int], statement: int, lent: frozenset[int]
    ) -> Placement | Fault:
        """Accept or refuse one way of finding the line in a statement."""
        tokens = self._sentences[statement].tokens
        kept = sorted(aligned.values())
        fault = polarity_fault(line, tokens, aligned)
        if fault is not None:
            return fault
        governor = dropped_governor(self._response, tokens, frozenset(kept))
        if governor is not None:
            return RejectionReason.QUALIFIER, f'"{governor}" is dropped'
        role = None if lent else dropped_role(tokens, kept)
        if role is not None:
            return RejectionReason.ORDER, f'without "{role}" it reads otherwise'
        if self._statements[statement].reason is not None:
            return RejectionReason.NOT_CHECKABLE, f"a {self._statements[statement].reason}"
        return self._placement(aligned, line, statement)

    def _placement(
        self, aligned: dict[int, int], line: Sequence[Token], statement: int
    ) -> Placement:
        tokens = self._sentences[statement].tokens
        first, last = min(aligned.values()), max(aligned.values())
        negations = {i for i in segment_of(tokens, first, last) if tokens[i].is_negation}
        matched = frozenset(aligned.values()) | negations  # they agree with the line's
        contents = {i for i, token in enumerate(tokens) if token.is_content}
        if contents <= matched:
            span = self._statements[statement].span
        else:
            span = Span(tokens[first].span.start, tokens[last].span.end)
        words = tuple((line[i].span.start, tokens[j].span) for i, j in sorted(aligned.items()))
        return Placement(statement, matched, span, words)

    def _resolved_pronoun(
        self, line: Sequence[Token], statement: int, missing: Sequence[int]
    ) -> dict[int, int] | None:
        """Find a line that names what a pronoun of the statement stands for.

        The words that are not in the statement must open the line, be the opening of the
        statement before (or the only name in it), and stand where the pronoun stands.
        """
        names = set(missing)
        run = [i for i in compared(line) if i <= max(missing)]
        rest = [i for i in compared(line) if i > max(missing)]
        if statement == 0 or not rest or set(run) != names:
            return None
        if not self._is_antecedent([line[i].key for i in run], statement - 1):
            return None
        sentence = self._sentences[statement]
        shortened = tuple(line[rest[0] :])
        for aligned in alignments(shortened, sentence):
            opening = min(aligned.values())
            has_pronoun = opening > 0 and sentence.tokens[opening - 1].word in PRONOUNS
            if (
                has_pronoun
                and dropped_role(sentence.tokens, [opening - 1, *aligned.values()]) is None
            ):
                return {i + rest[0]: position for i, position in aligned.items()}
        return None

    def _is_antecedent(self, run: Sequence[str], before: int) -> bool:
        tokens = self._sentences[before].tokens
        contents = [token for token in tokens if not token.is_free]
        keys = [token.key for token in contents]
        if keys[: len(run)] == list(run):
            return True
        names = [token.key for token in contents if token.is_name]
        return names == list(run)

    def _missing_everywhere(self, line: Sequence[Token]) -> Fault:
        """Name the words that are nowhere in the response, or say that they stand apart."""
        missing = [line[i] for i in compared(line) if line[i].key not in self._postings]
        if not missing:
            return RejectionReason.RECOMBINED, "no one sentence holds all its words"
        for reason, chosen in (
            (RejectionReason.NAME, [token for token in missing if token.is_name]),
            (RejectionReason.NUMBER, [token for token in missing if token.is_number]),
        ):
            if chosen:
                return reason, _quoted(chosen)
        hedges = QUALIFIERS | QUANTIFIERS
        if all(token.word in hedges for token in missing):
            return RejectionReason.QUALIFIER, f"{_quoted(missing)} is added"
        return RejectionReason.WORD, _quoted(missing)


def _quoted(tokens: Iterable[Token]) -> str:
    return ", ".join(f'"{token.word}"' for token in tokens)
