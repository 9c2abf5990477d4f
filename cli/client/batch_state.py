"""What the service says about a batch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from cli.client.answers import read_answer

_IN_PROGRESS = "in_progress"


class RunningAudit(BaseModel):
    """An audit that a worker is at; `claims` is None before its extraction."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    stage: str
    claims: int | None
    seconds: float


class BatchState(BaseModel):
    """How far a batch is; ``GET /v1/batches/{id}``.

    `completed`, `failed`, `cancelled` and `waiting` count audits and always add up to `total`;
    `running` are those of the waiting that a worker holds now. `supported`, `contradicted` and
    `unsupported` count claims. `longest_running` is the audit that a worker has been at longest.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    status: str
    total: int
    queued: int
    extracted: int
    running: int
    completed: int
    failed: int
    cancelled: int
    waiting: int
    hallucinated: int
    faithful: int
    no_checkable_claims: int
    supported: int
    contradicted: int
    unsupported: int
    created_at: datetime
    finished_at: datetime | None = None
    longest_running: RunningAudit | None = None

    @property
    def finished(self) -> int:
        """Audits that will not change any more."""
        return self.total - self.waiting

    @property
    def is_over(self) -> bool:
        """Whether nothing of the batch is waiting."""
        return self.status != _IN_PROGRESS

    @property
    def fraction(self) -> float:
        """Share of the audits that are finished."""
        return self.finished / self.total if self.total else 1.0

    @property
    def seconds(self) -> float | None:
        """Seconds from submission to the last result, or None while it is not over."""
        if self.finished_at is None:
            return None
        return max(0.0, (self.finished_at - self.created_at).total_seconds())


class SubmittedBatch(BaseModel):
    """What the service answers to an upload that it has stored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    total: int


def parse_batch_state(document: Any) -> BatchState:
    """Read the service's description of a batch.

    Raises
    ------
    ServiceError
        It is none, so that something else answers at this address, or another version.
    """
    return read_answer(BatchState, document, about="a batch")


def parse_submitted_batch(document: Any) -> SubmittedBatch:
    """Read the service's answer to an upload; see `parse_batch_state`."""
    return read_answer(SubmittedBatch, document, about="a batch")
