"""Audit responses against their sources: decompose, verify, score, and keep the whole trail.

Many audits share the encoder's batches, which is where the speed comes from; each result is the
same as if its audit had been alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Any

from halldetect.claims.decompose import decompose
from halldetect.claims.extractor import ClaimExtractor
from halldetect.claims.model import Decomposition, ExtractionMode
from halldetect.context.library import HYPOTHESIS_TOKENS
from halldetect.errors import HallDetectError, LimitError
from halldetect.nli.batching import DEFAULT_TOKEN_BUDGET
from halldetect.nli.model import NliModel
from halldetect.nli.pair_tokenizer import PairTokenizer
from halldetect.record import Record
from halldetect.results import completed_result, failed_result
from halldetect.scoring.policy import BUILTIN_POLICIES, Policy, policy_named
from halldetect.sources import PreparedSource, prepare_source
from halldetect.trail import AuditResult
from halldetect.verification import Hypotheses, VerificationInput, hypotheses_of, verify

# Tokens of all pairs that are verified together: enough to fill fifty batches, and few enough
# that results come every minute on a slow CPU.
_LOAD_TOKENS = 100_000
_LOAD_AUDITS = 64


class Stage(StrEnum):
    """What the progress counts."""

    EXTRACTION = "extraction"  # audits whose claims are known
    VERIFICATION = "verification"  # pairs through the encoder, in the load at hand


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage has come."""

    stage: Stage
    done: int
    total: int | None


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How audits are run; see `halldetect.settings.Settings` for the meaning of the fields."""

    mode: ExtractionMode = ExtractionMode.COVERED
    token_budget: int = DEFAULT_TOKEN_BUDGET
    preselected_spans: int | None = None
    max_characters: int = 4_000_000
    max_sentences: int = 50_000
    extractor_seconds: float = inf


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An audit between extraction and verification."""

    id: str
    record: Record
    policy: Policy
    source: PreparedSource
    decomposition: Decomposition
    hypotheses: Hypotheses


class Auditor:
    """Audits records with one extractor and one encoder, both already loaded.

    Parameters
    ----------
    extractor : ClaimExtractor
        Proposes claims.
    nli : NliModel
        Verifies them.
    policy : Policy
        Scores records that name no policy of their own.
    options : AuditOptions
        Mode, budgets and limits.
    on_progress : callable, optional
        Told after every extraction and every batch of pairs.
    """

    def __init__(
        self,
        extractor: ClaimExtractor,
        nli: NliModel,
        policy: Policy,
        options: AuditOptions | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.extractor = extractor
        self.nli = nli
        self.policy = policy
        self.options = options or AuditOptions()
        self._on_progress = on_progress or (lambda _: None)
        # The records of a batch often share a source; it is split and tokenised once.
        self._prepare_source = lru_cache(maxsize=8)(
            lambda text: read_source(text, self.nli, self.options)
        )

    def audit(self, record: Record) -> AuditResult:
        """Audit one record.

        Raises
        ------
        InputError
            When the source or response cannot be audited, or the policy is unknown.
        VerificationError
            When the encoder gave no probability for a pair.
        """
        prepared = self._prepare(record)
        return self._verify_and_score([prepared])[0]

    def audit_many(self, records: Iterable[Record]) -> Iterator[AuditResult]:
        """Audit records with shared batches; results come in the order of the records.

        An audit that fails yields a result with status ``failed`` and its reason; the others are
        not touched by it.
        """
        load: list[_Prepared | AuditResult] = []
        tokens = 0
        for number, record in enumerate(records, start=1):
            entry = self._prepare_or_fail(record)
            self._on_progress(Progress(Stage.EXTRACTION, number, None))
            load.append(entry)
            tokens += _pair_tokens(entry) if isinstance(entry, _Prepared) else 0
            if tokens >= _LOAD_TOKENS or len(load) >= _LOAD_AUDITS:
                yield from self._finish(load)
                load, tokens = [], 0
        yield from self._finish(load)

    def _prepare(self, record: Record) -> _Prepared:
        policy = policy_named(record.policy) if record.policy else self.policy
        source = self._prepare_source(record.source)
        decomposition = decompose_response(
            record.response, self.extractor, self.nli.tokenizer, self.options
        )
        hypotheses = hypotheses_of(decomposition.claims, record.response, self.nli)
        return _Prepared(uuid.uuid4().hex, record, policy, source, decomposition, hypotheses)

    def _prepare_or_fail(self, record: Record) -> _Prepared | AuditResult:
        try:
            return self._prepare(record)
        except HallDetectError as error:
            return self._failure(record, uuid.uuid4().hex, error)

    def _finish(self, load: list[_Prepared | AuditResult]) -> Iterator[AuditResult]:
        """Verify what was prepared; keep the order, and let a bad audit fail alone."""
        prepared = [entry for entry in load if isinstance(entry, _Prepared)]
        try:
            verified = iter(self._verify_and_score(prepared))
        except HallDetectError:
            verified = iter([self._verify_alone(entry) for entry in prepared])
        for entry in load:
            yield entry if isinstance(entry, AuditResult) else next(verified)

    def _verify_alone(self, entry: _Prepared) -> AuditResult:
        try:
            return self._verify_and_score([entry])[0]
        except HallDetectError as error:
            return self._failure(entry.record, entry.id, error)

    def _verify_and_score(self, load: list[_Prepared]) -> list[AuditResult]:
        inputs = [VerificationInput(e.source, e.hypotheses) for e in load]
        matrices = verify(
            self.nli,
            inputs,
            token_budget=self.options.token_budget,
            preselected_spans=self.options.preselected_spans,
            on_pairs=lambda done, total: self._on_progress(
                Progress(Stage.VERIFICATION, done, total)
            ),
        )
        return [
            completed_result(
                audit_id=entry.id,
                record=entry.record,
                policy=entry.policy,
                source=entry.source,
                decomposition=entry.decomposition,
                hypotheses=entry.hypotheses,
                matrix=matrix,
                mode=self.options.mode,
                models=self._models(),
            )
            for entry, matrix in zip(load, matrices, strict=True)
        ]

    def _failure(self, record: Record, audit_id: str, error: HallDetectError) -> AuditResult:
        # A name that is no policy is the failure itself; the trail then shows the auditor's own.
        policy = BUILTIN_POLICIES.get(record.policy or "", self.policy)
        return failed_result(
            audit_id, record, policy, str(error), self.options.mode, self._models()
        )

    def _models(self) -> dict[str, dict[str, object]]:
        return {
            "extractor": self.extractor.provenance.to_json(),
            "nli": encoder_identity(self.nli),
        }


def decompose_response(
    response: str, extractor: ClaimExtractor, tokenizer: PairTokenizer, options: AuditOptions
) -> Decomposition:
    """Take a response apart into claims that the encoder of `tokenizer` can read.

    Raises
    ------
    LimitError
        When the response has more characters or sentences than the options allow.
    """
    _check_length("response", response, options.max_characters)
    return decompose(
        response,
        extractor,
        count_tokens=lambda text: len(tokenizer.encode([text])[0].ids),
        max_tokens=HYPOTHESIS_TOKENS,
        mode=options.mode,
        max_sentences=options.max_sentences,
        max_seconds=options.extractor_seconds,
    )


def read_source(text: str, nli: NliModel, options: AuditOptions) -> PreparedSource:
    """Make a source ready for the encoder.

    Raises
    ------
    InputError
        When it is longer than the options allow, or the encoder can read nothing of it.
    """
    _check_length("source", text, options.max_characters)
    return prepare_source(text, nli, options.max_sentences)


def encoder_identity(nli: NliModel) -> dict[str, Any]:
    """Return what is recorded of an encoder with every audit."""
    return {**nli.provenance.to_json(), "max_tokens": nli.max_tokens}


def _pair_tokens(entry: _Prepared) -> int:
    """Tokens the encoder will read for an audit, if no span is left out."""
    ranges = entry.source.library.token_ranges
    premise_tokens = sum(token_range.end - token_range.start for token_range in ranges)
    hypothesis_tokens = sum(len(tokens) for tokens in entry.hypotheses.tokens)
    claims = len(entry.hypotheses.tokens)
    return claims * premise_tokens + hypothesis_tokens * len(ranges)


def _check_length(field: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise LimitError(
            f"the {field} has {len(text):,} characters; the limit is {limit:,} "
            "(HALLDETECT_MAX_CHARACTERS)"
        )
