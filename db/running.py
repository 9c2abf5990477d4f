"""What workers are at now: which audit of a batch they have been at longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from db.line import Stage, is_free
from db.models import Audit, Extraction


@dataclass(frozen=True, slots=True)
class RunningAudit:
    """An audit that a worker is at.

    Parameters
    ----------
    id : int
        The audit.
    stage : Stage
        What is being done to it.
    claims : int or None
        How many it has; None before its extraction.
    seconds : float
        Since this attempt at this stage was begun.
    """

    id: int
    stage: Stage
    claims: int | None
    seconds: float

    def document(self) -> dict[str, Any]:
        """Return what is told of it outside, where ids are texts."""
        return {
            "id": str(self.id),
            "stage": self.stage.value,
            "claims": self.claims,
            "seconds": self.seconds,
        }


def longest_running(session: Session, batch_ids: Sequence[int]) -> dict[int, RunningAudit]:
    """Return of each batch the audit that a worker has been at longest, if any is.

    Only the rows under lease are read, which are few however large the batches are.
    """
    begun = case(
        (Audit.status == Stage.EXTRACTION.awaited_in, Audit.extraction_started_at),
        else_=Audit.verification_started_at,
    )
    found = session.execute(
        select(
            Audit.batch_id,
            Audit.id,
            Audit.status,
            Extraction.claims,
            func.extract("epoch", func.clock_timestamp() - begun).label("seconds"),
        )
        .outerjoin(Extraction, Extraction.audit_id == Audit.id)
        .where(Audit.batch_id.in_(batch_ids), ~is_free(), Audit.lease_begun)
        .order_by(begun.desc(), Audit.id.desc())
    )
    stages = {stage.awaited_in: stage for stage in Stage}
    return {  # of a batch the last one stays, which was begun first
        row.batch_id: RunningAudit(row.id, stages[row.status], row.claims, float(row.seconds))
        for row in found
    }
