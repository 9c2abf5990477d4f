"""What goes in by the query and comes out as JSON, beside records and trails."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from api.moments import Moment
from db.audits import AuditFilter, AuditSummary
from db.batches import BatchState
from db.line import Stage
from db.policies import StoredPolicy
from halldetect.record import WITHOUT_NUL, UnknownFields
from halldetect.scoring.verdict import Label
from halldetect.settings import Profile
from halldetect.trail import Outcome, Status

BatchStatus = Literal["in_progress", "completed", "cancelled"]
NextCursor = Annotated[
    str | None, Field(description="Send it as `cursor` for the next page; null on the last page.")
]


class _Query(BaseModel):
    # A misspelt parameter would otherwise be ignored, and more be returned than was asked for.
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrailQuery(_Query):
    """What a trail should hold."""

    include: Literal["matrix"] | None = Field(
        default=None, description="`matrix` adds all probabilities, which are most of a trail."
    )

    @property
    def with_matrix(self) -> bool:
        """Whether the probabilities are wanted."""
        return self.include is not None


class PageQuery(_Query):
    """Which page of a list."""

    limit: int = Field(default=100, ge=1, le=1000, description="Most items of the page.")
    cursor: str | None = Field(
        default=None,
        max_length=256,
        description="`next_cursor` of the page before, under the same filters.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
    )


class AuditQuery(PageQuery):
    """Which audits to list; all filters must hold."""

    batch_id: int | None = Field(default=None, ge=1, lt=2**63)
    status: Status | None = None
    label: Label | None = None
    outcome: Outcome | None = None
    policy: str | None = Field(
        default=None,
        description="Name of a policy, in any version.",
        json_schema_extra=WITHOUT_NUL,
    )
    custom_id: str | None = Field(
        default=None, description="Exactly this one.", json_schema_extra=WITHOUT_NUL
    )
    submitted_from: Moment | None = Field(
        default=None, description="Submitted then or later.", examples=["2026-03-01T00:00:00Z"]
    )
    submitted_before: Moment | None = Field(
        default=None, description="Submitted earlier.", examples=["2026-04-01T00:00:00Z"]
    )

    @property
    def selection(self) -> dict[str, Any]:
        """The filters as JSON values: what a cursor belongs to."""
        return self.model_dump(mode="json", exclude={"limit", "cursor"}, exclude_none=True)

    @property
    def filters(self) -> AuditFilter:
        """The filters as the database takes them."""
        return AuditFilter(**self.model_dump(exclude={"limit", "cursor"}))


class UploadOptions(_Query):
    """What holds for the lines of an upload."""

    policy: str | None = Field(
        default=None,
        description="Policy of lines that name none; else the service's own.",
        json_schema_extra=WITHOUT_NUL,
    )
    priority: int = Field(
        default=0, ge=-100, le=100, description="Priority of lines that give none."
    )
    unknown_fields: UnknownFields = Field(
        default="refuse",
        description="Whether lines may hold fields that a record does not have: a field that is "
        "passed over may be a misspelt one.",
    )
    profile: Profile | None = Field(
        default=None, description="Refuse the upload unless the service runs this profile."
    )


class SubmittedAudit(BaseModel):
    """An audit that was stored and waits for a worker."""

    id: str
    custom_id: str | None
    status: Status = Status.QUEUED


class SubmittedBatch(BaseModel):
    """A batch that was stored and waits for workers."""

    id: str
    total: int = Field(description="Audits in it.")
    status: BatchStatus = "in_progress"


class RetriedBatch(BaseModel):
    """A batch whose failed audits wait again."""

    id: str
    retried: int = Field(description="Audits that had failed: queued + extracted.")
    queued: int = Field(description="Of these, those that wait for their claims.")
    extracted: int = Field(description="Of these, those that have claims.")


class AuditPage(BaseModel):
    """Audits, newest first."""

    items: list[AuditSummary]
    next_cursor: NextCursor


class RunningAudit(BaseModel):
    """An audit that a worker is at. How far it is with it is written when it is done."""

    id: str
    stage: Stage
    claims: int | None = Field(description="How many it has; null before its extraction.")
    seconds: float = Field(description="Since this attempt at this stage was begun.")


class BatchView(BaseModel):
    """A batch, and how far it is: total = completed + failed + cancelled + waiting, always."""

    id: str
    status: BatchStatus = Field(
        description="`cancelled` once some of its audits were, and none waits any more."
    )
    created_at: datetime
    cancelled_at: datetime | None
    finished_at: datetime | None
    total: int
    waiting: int = Field(description="Audits that have not ended: queued + extracted.")
    queued: int = Field(description="Audits that wait for their claims.")
    extracted: int = Field(description="Audits that wait for the verification of their claims.")
    running: int = Field(description="Of those that wait, how many a worker holds.")
    completed: int
    failed: int
    cancelled: int
    hallucinated: int = Field(description="Of the completed audits.")
    faithful: int = Field(description="Of the completed audits.")
    no_checkable_claims: int = Field(description="Of the completed audits.")
    supported: int = Field(description="Claims of the completed audits.")
    contradicted: int = Field(description="Claims of the completed audits.")
    unsupported: int = Field(description="Claims of the completed audits.")
    longest_running: RunningAudit | None = Field(
        description="Of the audits that workers are at, the one they have been at longest."
    )

    @classmethod
    def of(cls, state: BatchState) -> Self:
        """Describe a batch."""
        return cls(**state.document())


class BatchPage(BaseModel):
    """Batches, newest first."""

    items: list[BatchView]
    next_cursor: NextCursor


class PolicyView(BaseModel):
    """A named set of scoring rules in its newest version."""

    name: str
    version: str = Field(description="Changes with any rule, and never with the name.")
    created_at: datetime
    rules: dict[str, Any]

    @classmethod
    def of(cls, stored: StoredPolicy) -> Self:
        """Describe a policy."""
        return cls(
            name=stored.policy.name,
            version=stored.policy.version,
            created_at=stored.created_at,
            rules=stored.policy.model_dump(mode="json", exclude={"name"}),
        )


class PolicyList(BaseModel):
    """All policies, by name."""

    items: list[PolicyView]


class Health(BaseModel):
    """The process lives."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """All that the service needs is there."""

    status: Literal["ready"] = "ready"
    warnings: list[str] = Field(
        default_factory=list,
        description="What keeps submitted work waiting, such as a queue that no worker takes.",
    )
