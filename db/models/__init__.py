"""The tables. Constraints say what is impossible; docs/sql.md says what analysts read instead."""

from __future__ import annotations

from db.models.audits import WAITING, Audit, Batch
from db.models.findings import Claim, Extraction, Probability, SpanTable, Verification
from db.models.inputs import Document, Model, ModelKind, PolicyVersion
from db.models.judgements import Rescoring, RescoringState, Review, Scoring
from db.models.keys import ApiKey, ApiKeySecret
from db.models.operations import IdempotencyKey, WorkerRow, WorkerState
from db.models.webhooks import DeliveryState, Webhook, WebhookDelivery, WebhookSecret

__all__ = [
    "WAITING",
    "ApiKey",
    "ApiKeySecret",
    "Audit",
    "Batch",
    "Claim",
    "DeliveryState",
    "Document",
    "Extraction",
    "IdempotencyKey",
    "Model",
    "ModelKind",
    "PolicyVersion",
    "Probability",
    "Rescoring",
    "RescoringState",
    "Review",
    "Scoring",
    "SpanTable",
    "Verification",
    "Webhook",
    "WebhookDelivery",
    "WebhookSecret",
    "WorkerRow",
    "WorkerState",
]
