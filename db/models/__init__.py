"""The tables. Constraints say what is impossible; docs/sql.md says what analysts read instead."""

from __future__ import annotations

from db.models.audits import WAITING, Audit, Batch
from db.models.findings import Claim, Extraction, Probability, SpanTable, Verification
from db.models.inputs import Document, Model, ModelKind, PolicyVersion
from db.models.operations import IdempotencyKey, WorkerRow, WorkerState

__all__ = [
    "WAITING",
    "Audit",
    "Batch",
    "Claim",
    "Document",
    "Extraction",
    "IdempotencyKey",
    "Model",
    "ModelKind",
    "PolicyVersion",
    "Probability",
    "SpanTable",
    "Verification",
    "WorkerRow",
    "WorkerState",
]
