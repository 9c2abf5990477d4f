"""The audit trail: everything one audit found, as one JSON document.

The same models write ``--json`` and JSONL results; `docs/trail.md` explains every field.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from halldetect.claims.model import ClaimOrigin, FinishReason, RejectionReason, UnauditedReason
from halldetect.scoring.policy import Policy
from halldetect.scoring.verdict import Label, Verdict


class _TrailModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Status(StrEnum):
    """How far an audit is; an audit within one process only ever ends."""

    QUEUED = "queued"
    EXTRACTED = "extracted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Outcome(StrEnum):
    """What a completed audit found to judge."""

    SCORED = "scored"
    NO_CHECKABLE_CLAIMS = "no_checkable_claims"


class TextSpan(_TrailModel):
    """Characters ``[start, end)`` of a text."""

    start: int
    end: int


class Evidence(_TrailModel):
    """The span that speaks most for (or against) a claim."""

    probability: float
    chunk: str  # "m/index": the finest chunk that holds the span
    span: TextSpan
    text: str


class ClaimFlags(_TrailModel):
    """What a claim contains; weighted policies count flagged claims twice."""

    name: bool
    number: bool
    date: bool


class ClaimTrail(_TrailModel):
    """One claim and everything found about it."""

    text: str
    verified_text: str  # the hypothesis: the claim, after its antecedent sentence if it needs one
    span: TextSpan
    origin: ClaimOrigin
    part: int
    flags: ClaimFlags
    verdict: Verdict
    score: float
    entailment: Evidence
    contradiction: Evidence
    checked_spans: int


class Rejected(_TrailModel):
    """A generated line that the response does not assert."""

    text: str
    reason: RejectionReason
    detail: str


class Unaudited(_TrailModel):
    """A sentence of the response that is no claim."""

    span: TextSpan
    text: str
    reason: UnauditedReason


class GenerationTrail(_TrailModel):
    """One call of the extractor."""

    window: TextSpan
    finish: FinishReason
    parsed: bool
    prompt_tokens: int
    output_tokens: int


class DocumentTrail(_TrailModel):
    """The source, and how it was read."""

    sha256: str
    characters: int
    sentences: int
    unreadable_sentences: int
    tokens: int
    unknown_tokens: int
    windowed_chunks: int


class ChunkTrail(_TrailModel):
    """One chunk id and the spans that cover it."""

    granularity: int
    index: int
    spans: list[int]


class Matrix(_TrailModel):
    """All probabilities: one row a claim, one column a span; null where pre-selection skipped."""

    spans: list[TextSpan]
    chunks: list[ChunkTrail]
    entailment: list[list[float | None]]
    neutral: list[list[float | None]]
    contradiction: list[list[float | None]]


class PolicyTrail(_TrailModel):
    """The rules that were applied, in full."""

    name: str
    version: str
    rules: dict[str, Any]

    @classmethod
    def of(cls, policy: Policy) -> PolicyTrail:
        """Describe `policy`."""
        rules = policy.model_dump(mode="json", exclude={"name"})
        return cls(name=policy.name, version=policy.version, rules=rules)


class Counts(_TrailModel):
    """Tally of one audit."""

    supported: int
    contradicted: int
    unsupported: int
    rejected: int
    unaudited: int


class AuditResult(_TrailModel):
    """The whole trail of one audit."""

    id: str
    custom_id: str | None
    status: Status
    outcome: Outcome | None = None
    fedscore: float | None = None
    label: Label | None = None
    deciding_claim: int | None = None
    error: str | None = None
    policy: PolicyTrail
    counts: Counts | None = None
    claims: list[ClaimTrail] = []
    rejected: list[Rejected] = []
    unaudited: list[Unaudited] = []
    generations: list[GenerationTrail] = []
    extraction_mode: str | None  # None until the claims are extracted
    document: DocumentTrail | None = None
    matrix: Matrix | None = None
    models: dict[str, dict[str, Any]]
    warnings: list[str] = []
    metadata: dict[str, Any] = {}
