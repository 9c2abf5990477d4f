"""Failed audits put back into the line, as somebody asked: what has ended otherwise stays."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, exists, select, update
from sqlalchemy.orm import Session

from db.line import Stage
from db.models import Audit, Extraction
from db.webhooks import expect_deliveries_again
from halldetect.trail import Status


@dataclass(frozen=True, slots=True)
class Retried:
    """Audits that wait again.

    Parameters
    ----------
    queued, extracted : int
        How many wait for their claims, and how many have theirs and wait for the verification.
    """

    queued: int
    extracted: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.queued + self.extracted

    @property
    def stages(self) -> list[Stage]:
        """The stages whose workers have something to do."""
        counts = {Stage.EXTRACTION: self.queued, Stage.VERIFICATION: self.extracted}
        return [stage for stage, count in counts.items() if count]


def retry_audit(session: Session, audit_id: int) -> Retried:
    """Put a failed audit back into the line; nothing happens to one that has not failed.

    Its faults are forgotten, its claims, its attempts and the loss of its last worker are not: it
    goes on after its extraction, and is run alone if the last worker was lost over it.
    """
    return _retry(session, Audit.id == audit_id)


def retry_batch(session: Session, batch_id: int) -> Retried:
    """Put all failed audits of a batch back into the line."""
    return _retry(session, Audit.batch_id == batch_id)


def _retry(session: Session, chosen: ColumnElement[bool]) -> Retried:
    has_claims = exists(select(Extraction.audit_id).where(Extraction.audit_id == Audit.id))
    retried = session.execute(
        update(Audit)
        .where(chosen, Audit.status == Status.FAILED)
        .values(
            status=case((has_claims, Status.EXTRACTED.value), else_=Status.QUEUED.value),
            faults=0,
            error=None,
            finished_at=None,
        )
        .returning(Audit.status, Audit.batch_id)
        .execution_options(synchronize_session=False)
    ).all()
    expect_deliveries_again(session, {batch_id for _, batch_id in retried if batch_id is not None})
    extracted = sum(status is Status.EXTRACTED for status, _ in retried)
    return Retried(queued=len(retried) - extracted, extracted=extracted)
