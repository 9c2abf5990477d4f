"""From what an audit computed to its trail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halldetect.claims.model import Claim, Decomposition, ExtractionMode, FinishReason
from halldetect.context.library import ContextLibrary
from halldetect.record import Record
from halldetect.scoring.matrix import ChunkSpans, ProbabilityMatrix
from halldetect.scoring.policy import Policy
from halldetect.scoring.score import AuditScore, score_audit
from halldetect.scoring.verdict import Verdict
from halldetect.sources import PreparedSource
from halldetect.spans import Span
from halldetect.trail import (
    AuditResult,
    ChunkTrail,
    ClaimFlags,
    ClaimTrail,
    Counts,
    DocumentTrail,
    Evidence,
    GenerationTrail,
    Matrix,
    Outcome,
    PolicyTrail,
    Rejected,
    Status,
    TextSpan,
    Unaudited,
)
from halldetect.verification import Hypotheses

Models = dict[str, dict[str, Any]]


def completed_result(
    *,
    audit_id: str,
    record: Record,
    policy: Policy,
    source: PreparedSource,
    decomposition: Decomposition,
    hypotheses: Hypotheses,
    matrix: ProbabilityMatrix,
    mode: ExtractionMode,
    models: Models,
) -> AuditResult:
    """Score an audit under `policy` and write its whole trail.

    Raises
    ------
    VerificationError
        When a cell of the matrix is no probability distribution.
    PolicyError
        When the policy reads granularities that this source does not have.
    """
    library = source.library
    claims = decomposition.claims
    score = score_claims(claims, library, matrix, policy)
    return AuditResult(
        id=audit_id,
        custom_id=record.custom_id,
        status=Status.COMPLETED,
        outcome=Outcome.SCORED if claims else Outcome.NO_CHECKABLE_CLAIMS,
        fedscore=score.response_score,
        label=score.label,
        deciding_claim=score.deciding_claim,
        policy=PolicyTrail.of(policy),
        counts=_counts(score, decomposition),
        claims=_claim_trails(source, decomposition, hypotheses, matrix, score),
        rejected=rejected_trail(decomposition),
        unaudited=unaudited_trail(decomposition, record.response),
        generations=generation_trail(decomposition),
        extraction_mode=mode.value,
        document=_document(source),
        matrix=_matrix_trail(library, matrix),
        models=models,
        warnings=[
            *extraction_warnings(generation_trail(decomposition)),
            *warnings_of(source, hypotheses),
        ],
        metadata=record.metadata,
    )


def failed_result(
    audit_id: str,
    record: Record,
    policy: Policy,
    error: str,
    mode: ExtractionMode,
    models: Models,
) -> AuditResult:
    """Record that an audit could not be made, and why."""
    return AuditResult(
        id=audit_id,
        custom_id=record.custom_id,
        status=Status.FAILED,
        error=error,
        policy=PolicyTrail.of(policy),
        extraction_mode=mode.value,
        models=models,
        metadata=record.metadata,
    )


def rejected_trail(decomposition: Decomposition) -> list[Rejected]:
    """Describe the generated lines that the response does not assert."""
    return [
        Rejected(text=line.text, reason=line.reason, detail=line.detail)
        for line in decomposition.rejected
    ]


def unaudited_trail(decomposition: Decomposition, response: str) -> list[Unaudited]:
    """Describe the sentences of the response that are no claim."""
    return [
        Unaudited(span=_span(left.span), text=left.span.of(response), reason=left.reason)
        for left in decomposition.unaudited
    ]


def generation_trail(decomposition: Decomposition) -> list[GenerationTrail]:
    """Describe the calls of the extractor."""
    return [
        GenerationTrail(
            window=_span(call.window),
            finish=call.finish,
            parsed=call.parsed,
            prompt_tokens=call.prompt_tokens,
            output_tokens=call.output_tokens,
        )
        for call in decomposition.generations
    ]


def score_claims(
    claims: Sequence[Claim], library: ContextLibrary, matrix: ProbabilityMatrix, policy: Policy
) -> AuditScore:
    """Score an audit's claims under `policy`.

    Raises
    ------
    VerificationError, PolicyError
        As for `halldetect.scoring.score.score_audit`.
    """
    flags = [claim.has_name or claim.has_number or claim.has_date for claim in claims]
    return score_audit(matrix, np.array(flags, dtype=bool), chunk_spans(library), policy)


def chunk_spans(library: ContextLibrary) -> ChunkSpans:
    """Describe a library's chunks for scoring."""
    return ChunkSpans(
        granularity=library.chunk_granularity,
        offsets=library.chunk_span_offsets,
        indices=library.chunk_span_indices,
        n_spans=len(library.spans),
    )


def _claim_trails(
    source: PreparedSource,
    decomposition: Decomposition,
    hypotheses: Hypotheses,
    matrix: ProbabilityMatrix,
    score: AuditScore,
) -> list[ClaimTrail]:
    names = source.library.chunk_names()
    checked = np.isfinite(matrix.entailment).sum(axis=1)

    def evidence(probability: float, span_number: int) -> Evidence:
        span = source.library.spans[span_number]
        return Evidence(
            probability=_float32(probability),
            chunk=names[span_number],
            span=_span(span),
            text=span.of(source.text),
        )

    return [
        ClaimTrail(
            text=claim.text,
            verified_text=hypotheses.texts[n],
            span=_span(claim.span),
            origin=claim.origin,
            part=claim.part,
            flags=ClaimFlags(name=claim.has_name, number=claim.has_number, date=claim.has_date),
            verdict=score.verdicts[n],
            score=float(score.values[n]),
            entailment=evidence(score.best_entailment[n], int(score.best_entailment_spans[n])),
            contradiction=evidence(
                score.best_contradiction[n], int(score.best_contradiction_spans[n])
            ),
            checked_spans=int(checked[n]),
        )
        for n, claim in enumerate(decomposition.claims)
    ]


def _counts(score: AuditScore, decomposition: Decomposition) -> Counts:
    verdicts = score.verdict_counts
    return Counts(
        supported=verdicts[Verdict.SUPPORTED],
        contradicted=verdicts[Verdict.CONTRADICTED],
        unsupported=verdicts[Verdict.UNSUPPORTED],
        rejected=len(decomposition.rejected),
        unaudited=len(decomposition.unaudited),
    )


def _document(source: PreparedSource) -> DocumentTrail:
    return DocumentTrail(
        sha256=source.sha256,
        characters=len(source.text),
        sentences=source.sentences,
        unreadable_sentences=source.unreadable_sentences,
        tokens=len(source.library.tokens.ids),
        unknown_tokens=source.library.tokens.unknown,
        windowed_chunks=source.library.windowed_chunks,
    )


def _matrix_trail(library: ContextLibrary, matrix: ProbabilityMatrix) -> Matrix:
    return Matrix(
        spans=[_span(span) for span in library.spans],
        chunks=[
            ChunkTrail(
                granularity=chunk.granularity,
                index=chunk.index,
                spans=library.spans_of_chunk(number).tolist(),
            )
            for number, chunk in enumerate(library.chunks)
        ],
        entailment=_rows(matrix.entailment),
        neutral=_rows(matrix.neutral),
        contradiction=_rows(matrix.contradiction),
    )


def _rows(values: NDArray[np.float32]) -> list[list[float | None]]:
    return [[None if np.isnan(cell) else _float32(cell) for cell in row] for row in values]


def _float32(value: float) -> float:
    """Shorten to the fewest digits that bring a float32 back exactly."""
    return float(str(np.float32(value)))


def _span(span: Span) -> TextSpan:
    return TextSpan(start=span.start, end=span.end)


def extraction_warnings(generations: Sequence[GenerationTrail]) -> list[str]:
    """Say what the extractor had no time to read of a response."""
    unread = sum(call.finish is FinishReason.TIME for call in generations)
    if not unread:
        return []
    return [
        f"the time for extraction was up before the extractor had read all of the response: in "
        f"{unread} of its {len(generations)} parts, sentences are claims instead "
        "(HALLDETECT_EXTRACTOR_SECONDS)"
    ]


def warnings_of(source: PreparedSource, hypotheses: Hypotheses) -> list[str]:
    """Say what the encoder cannot read of a source and its hypotheses."""
    warnings = []
    tokens = source.library.tokens
    if tokens.unknown:
        warnings.append(
            f"{tokens.unknown} of the source's {len(tokens.ids)} tokens are unknown to the NLI "
            "model: it cannot read that text"
        )
    if source.unreadable_sentences:
        warnings.append(
            f"{source.unreadable_sentences} sentences of the source hold no character that the "
            "NLI model's tokenizer keeps"
        )
    for text, ids, unknown in zip(
        hypotheses.texts, hypotheses.tokens, hypotheses.unknown, strict=True
    ):
        if unknown:
            warnings.append(
                f"{unknown} of {len(ids)} tokens of the claim {text[:60]!r} are unknown to the "
                "NLI model: its verdict says little"
            )
    return warnings
