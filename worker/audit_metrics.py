"""What becomes of audits in a worker, and how long that takes: counts and times."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum

from db.claiming import ClaimedAudit
from db.leases import Recovered
from db.line import Stage
from worker.metric_families import Families


class StageOutcome(StrEnum):
    """How an audit left a stage."""

    COMPLETED = "completed"
    FAILED = "failed"
    POISON = "poison"


class RetryCause(StrEnum):
    """What an attempt is charged for."""

    ERROR = "error"
    WORKER_LOST = "worker_lost"


class AuditMetrics:
    """The figures of audits that one process claimed, stored, failed or brought back."""

    def __init__(self, families: Families) -> None:
        self._finished = families.counter(
            "halldetect_audits_finished",
            "Audits that left a stage: completed, failed by themselves, or poison, which failed "
            "because workers were lost over them.",
            stage=Stage,
            outcome=StageOutcome,
        )
        self._retries = families.counter(
            "halldetect_retries",
            "Attempts that were charged to an audit, which waits for another one.",
            cause=RetryCause,
        )
        self._waiting = families.latency(
            "halldetect_audit_waiting_seconds",
            "From the submission or the extraction until a worker took the audit first.",
            stage=Stage,
        )
        self._processing = families.latency(
            "halldetect_audit_processing_seconds",
            "From the claim of an audit until its stage was stored.",
            stage=Stage,
        )
        self._turnaround = families.latency(
            "halldetect_audit_turnaround_seconds",
            "From the submission until the audit was completed.",
        )

    def claimed(self, stage: Stage, audits: Sequence[ClaimedAudit]) -> None:
        """Note audits that were taken from the line."""
        for audit in audits:
            if audit.waited_seconds is not None:
                self._waiting.labels(stage.value).observe(audit.waited_seconds)

    def stored(self, stage: Stage, audit: ClaimedAudit) -> None:
        """Note an audit whose stage was stored."""
        held_seconds = time.monotonic() - audit.claimed_at
        self._finished.labels(stage.value, StageOutcome.COMPLETED.value).inc()
        self._processing.labels(stage.value).observe(held_seconds)
        if stage is Stage.VERIFICATION:
            self._turnaround.observe(audit.age_seconds + held_seconds)

    def failed(self, stage: Stage) -> None:
        """Note an audit that failed by its own error."""
        self._finished.labels(stage.value, StageOutcome.FAILED.value).inc()

    def charged(self) -> None:
        """Note an error that another attempt may not meet."""
        self._retries.labels(RetryCause.ERROR.value).inc()

    def recovered(self, found: Recovered) -> None:
        """Note audits whose workers were lost, and what the sweeper made of them."""
        self._retries.labels(RetryCause.WORKER_LOST.value).inc(len(found.charged))
        for lost in found.poison:
            self._finished.labels(lost.stage.value, StageOutcome.POISON.value).inc()
