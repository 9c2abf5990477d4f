"""An audit run again: the stored claims against the stored source, and the claims themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cli.consistency import StoredState, is_same_score
from db.readings import StoredReading
from db.spans import SpanKey
from db.trails import StoredAudit
from halldetect.auditor import AuditOptions, decompose_response, read_source
from halldetect.claims.extractor import ClaimExtractor
from halldetect.claims.model import Decomposition
from halldetect.errors import InputError
from halldetect.nli.model import NliModel
from halldetect.nli.pair_tokenizer import PairTokenizer
from halldetect.results import chunk_spans
from halldetect.scoring.matrix import ProbabilityMatrix, ScoringInput
from halldetect.scoring.policy import parse_policy
from halldetect.scoring.score import AuditScore, score_audits
from halldetect.scoring.verdict import Label
from halldetect.sources import PreparedSource
from halldetect.text.sentences import SPLITTER
from halldetect.trail import ChunkTrail, Matrix, TextSpan
from halldetect.verification import Hypotheses, VerificationInput, verify


@dataclass(frozen=True, slots=True)
class RepeatedVerification:
    """The stored claims, verified and scored again.

    Parameters
    ----------
    compared : int
        Probabilities that both runs have: three for each claim and span.
    largest_difference : float
        Between them; 0 when there is none to compare.
    otherwise_selected : int
        Pairs of claim and span that only one of the runs checked.
    changed_verdicts : tuple of int
        Positions of claims whose verdict is another now.
    stored_score, rescored, repeated_score : float or None
        As stored; from the stored probabilities; from those computed now.
    stored_label, repeated_label : Label or None
        As stored, and now.
    """

    compared: int
    largest_difference: float
    otherwise_selected: int
    changed_verdicts: tuple[int, ...]
    stored_score: float | None
    rescored: float | None
    repeated_score: float | None
    stored_label: Label | None
    repeated_label: Label | None

    @property
    def is_consistent(self) -> bool:
        """Whether the stored score is that of the stored probabilities."""
        return is_same_score(self.stored_score, self.rescored)

    def is_reproduced(self, tolerance: float) -> bool:
        """Tell whether probabilities, verdicts and label are the same again."""
        return (
            self.is_consistent
            and self.largest_difference <= tolerance
            and not self.otherwise_selected
            and not self.changed_verdicts
            and self.stored_label is self.repeated_label
        )


@dataclass(frozen=True, slots=True)
class RepeatedExtraction:
    """The claims of the response, extracted again.

    Parameters
    ----------
    stored : int
        Claims of the trail.
    missing, new : tuple of str
        Claims that did not come out again, and claims that came out now.
    stored_tokens, repeated_tokens : int
        What the extractor generated, then and now.
    """

    stored: int
    missing: tuple[str, ...]
    new: tuple[str, ...]
    stored_tokens: int
    repeated_tokens: int

    @property
    def is_same(self) -> bool:
        """Whether the same claims came out in the same places."""
        return not self.missing and not self.new


class SpansDiffer(InputError):
    """The source is read otherwise by now, so that no probability stands beside its like."""


def repeat_verification(
    audit: StoredAudit,
    reading: StoredReading,
    stored: StoredState,
    nli: NliModel,
    options: AuditOptions,
) -> RepeatedVerification:
    """Verify the stored claims of a completed audit again, and score them by its policy.

    Parameters
    ----------
    audit : StoredAudit
        With its probabilities.
    reading : StoredReading
        How its source was read.
    stored : StoredState
        What follows from the probabilities.
    nli : NliModel
        The encoder that the trail names.
    options : AuditOptions
        Limits.

    Raises
    ------
    SpansDiffer
        The source has other spans now, with what they depend on.
    InputError, VerificationError
        As for an audit.
    """
    policy = parse_policy({"name": audit.policy.name, **audit.policy.rules})
    source = read_source(reading.source, nli, options)
    _check_spans(audit.matrix, source, reading.key, nli)
    [matrix] = verify(
        nli,
        [VerificationInput(source, _stored_hypotheses(audit, nli))],
        token_budget=options.token_budget,
        preselected_spans=reading.preselected_spans,
    )
    repeated = ScoringInput(matrix, stored.scored.flagged, chunk_spans(source.library))
    score = score_audits([repeated], policy).audit(0)
    compared, largest, otherwise = _compare(stored.scored.matrix, matrix)
    return RepeatedVerification(
        compared=compared,
        largest_difference=largest,
        otherwise_selected=otherwise,
        changed_verdicts=_changed_verdicts(audit, score),
        stored_score=audit.fedscore,
        rescored=stored.response_score,
        repeated_score=score.response_score,
        stored_label=audit.label,
        repeated_label=score.label,
    )


def repeat_extraction(
    audit: StoredAudit, extractor: ClaimExtractor, tokenizer: PairTokenizer, options: AuditOptions
) -> RepeatedExtraction:
    """Extract the claims of an audit's response again and compare texts and places.

    Raises
    ------
    InputError, ModelError
        As for an audit.
    """
    decomposition = decompose_response(audit.response, extractor, tokenizer, options)
    then = Counter(
        (claim.span.start, claim.span.end, claim.part, claim.origin, claim.text)
        for claim in audit.claims
    )
    now = Counter(
        (claim.span.start, claim.span.end, claim.part, claim.origin, claim.text)
        for claim in decomposition.claims
    )
    return RepeatedExtraction(
        stored=len(audit.claims),
        missing=tuple(text for *_, text in sorted((then - now).elements())),
        new=tuple(text for *_, text in sorted((now - then).elements())),
        stored_tokens=sum(call.output_tokens for call in audit.generations),
        repeated_tokens=_tokens(decomposition),
    )


def _stored_hypotheses(audit: StoredAudit, nli: NliModel) -> Hypotheses:
    texts = tuple(claim.verified_text for claim in audit.claims)
    tokenized = nli.tokenizer.encode(list(texts))
    return Hypotheses(
        texts, tuple(text.ids for text in tokenized), tuple(text.unknown for text in tokenized)
    )


def _check_spans(
    matrix: Matrix | None, source: PreparedSource, key: SpanKey, nli: NliModel
) -> None:
    library = source.library
    spans = [TextSpan(start=span.start, end=span.end) for span in library.spans]
    chunks = [
        ChunkTrail(
            granularity=chunk.granularity,
            index=chunk.index,
            spans=library.spans_of_chunk(number).tolist(),
        )
        for number, chunk in enumerate(library.chunks)
    ]
    if matrix is not None and matrix.spans == spans and matrix.chunks == chunks:
        return
    now = SpanKey(SPLITTER, nli.tokenizer.digest, nli.max_tokens)
    changed = [
        f"{what} {then!r} then, {today!r} now"
        for what, then, today in (
            ("sentence splitter", key.splitter, now.splitter),
            ("tokenizer", key.tokenizer, now.tokenizer),
            ("token limit", key.token_limit, now.token_limit),
        )
        if then != today
    ]
    raise SpansDiffer(
        "the source is read in other spans now, so that no probability can be compared: "
        + ("; ".join(changed) or "by the same splitter and tokenizer, which is a fault")
    )


def _compare(stored: ProbabilityMatrix, repeated: ProbabilityMatrix) -> tuple[int, float, int]:
    """Return how many probabilities were compared, how far they are apart, and pairs of one run."""
    then = np.stack([stored.entailment, stored.neutral, stored.contradiction]).astype(np.float64)
    now = np.stack([repeated.entailment, repeated.neutral, repeated.contradiction])
    in_both = np.isfinite(then) & np.isfinite(now)
    apart = np.abs(then - now)[in_both]
    in_one = np.isfinite(then[0]) != np.isfinite(now[0])
    return int(in_both.sum()), float(apart.max(initial=0.0)), int(in_one.sum())


def _changed_verdicts(audit: StoredAudit, score: AuditScore) -> tuple[int, ...]:
    return tuple(
        number
        for number, (claim, verdict) in enumerate(zip(audit.claims, score.verdicts, strict=True))
        if claim.verdict is not verdict
    )


def _tokens(decomposition: Decomposition) -> int:
    return sum(call.output_tokens for call in decomposition.generations)
