"""Writing what the extractor found: one transaction an audit."""

from __future__ import annotations

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.leases import FREE, Lease
from db.models import Claim, Extraction
from db.progress import write_fenced
from db.storable_texts import storable
from halldetect.claims.model import Decomposition, ExtractionMode
from halldetect.results import generation_trail, rejected_trail, unaudited_trail
from halldetect.trail import Status


def save_extraction(
    session: Session,
    lease: Lease,
    decomposition: Decomposition,
    *,
    response: str,
    mode: ExtractionMode,
    model_id: int,
) -> None:
    """Store the claims of an audit and pass it on to verification.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's; nothing is written.
    """
    write_fenced(
        session,
        lease,
        status=Status.EXTRACTED,
        extracted_at=func.clock_timestamp(),
        worker_lost=False,
        **FREE,
    )
    session.execute(
        insert(Extraction).values(
            audit_id=lease.audit_id,
            model_id=model_id,
            mode=mode,
            claims=len(decomposition.claims),
            rejected=[
                {
                    **line.model_dump(mode="json"),
                    "text": storable(line.text),
                    "detail": storable(line.detail),
                }
                for line in rejected_trail(decomposition)
            ],
            unaudited=[
                left.model_dump(mode="json") for left in unaudited_trail(decomposition, response)
            ],
            generations=[call.model_dump(mode="json") for call in generation_trail(decomposition)],
        )
    )
    if decomposition.claims:
        session.execute(
            insert(Claim),
            [
                {
                    "audit_id": lease.audit_id,
                    "position": position,
                    "text": claim.text,
                    "span_start": claim.span.start,
                    "span_end": claim.span.end,
                    "origin": claim.origin,
                    "part": claim.part,
                    "has_name": claim.has_name,
                    "has_number": claim.has_number,
                    "has_date": claim.has_date,
                    "antecedent_start": claim.antecedent.start if claim.antecedent else None,
                    "antecedent_end": claim.antecedent.end if claim.antecedent else None,
                }
                for position, claim in enumerate(decomposition.claims)
            ],
        )
