"""Claims: taking audits from the head of the line, within a budget, under a lease."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, cast, func, select, update
from sqlalchemy.orm import Session

from db.leases import Lease, expiry
from db.line import Stage, in_line_for, is_free, order
from db.models import Audit, Claim, Document, Extraction, PolicyVersion
from db.schema_version import require_this_version
from halldetect.claims.model import Claim as ResponseClaim
from halldetect.scoring.policy import Policy, parse_policy
from halldetect.spans import Span
from halldetect.trail import GenerationTrail


@dataclass(frozen=True, slots=True)
class ClaimedAudit:
    """An audit under lease, with all that its stage needs to know.

    Parameters
    ----------
    lease : Lease
        The right to write it.
    batch_id : int or None
        Its batch.
    worker_lost : bool
        Its last worker was lost: it came alone, and should be run alone.
    response, context, source : str
        The texts.
    document_id : int
        The source's row.
    policy : Policy
        Scores it by default.
    claims : tuple of Claim
        What was extracted; empty before that.
    generations : tuple of GenerationTrail
        Calls of the extractor; empty before that.
    age_seconds : float
        Since its submission, when it was claimed.
    waited_seconds : float or None
        Since this stage could begin, when it was claimed; None unless it was claimed for the first
        time.
    claimed_at : float
        When it was claimed, on this process's monotonic clock.
    """

    lease: Lease
    batch_id: int | None
    worker_lost: bool
    response: str
    context: str | None
    document_id: int
    source: str
    policy: Policy
    claims: tuple[ResponseClaim, ...] = ()
    generations: tuple[GenerationTrail, ...] = ()
    age_seconds: float = 0.0
    waited_seconds: float | None = None
    claimed_at: float = field(default_factory=time.monotonic)


def claim_extraction(
    session: Session, owner: str, *, lease_seconds: int, max_audits: int
) -> list[ClaimedAudit]:
    """Take the audits at the head of the line for extraction.

    Parameters
    ----------
    owner : str
        Name of the worker.
    lease_seconds : int
        How long it may go without renewing.
    max_audits : int
        Most audits to take.

    Returns
    -------
    list of ClaimedAudit
        In the order of the line; empty when nothing waits.
    """
    waiting = _lock_head(session, Stage.EXTRACTION, max_audits)
    chosen = _cut(waiting, [0] * len(waiting), budget=1)
    return _take(session, Stage.EXTRACTION, owner, chosen, lease_seconds)


def claim_verification(
    session: Session, owner: str, *, lease_seconds: int, max_audits: int, token_budget: int
) -> list[ClaimedAudit]:
    """Take audits at the head of the line for verification, up to a budget.

    Parameters
    ----------
    owner : str
        Name of the worker.
    lease_seconds : int
        How long it may go without renewing.
    max_audits : int
        Most audits to take.
    token_budget : int
        Most tokens the encoder should read for all of them; the head is taken whatever it costs.

    Returns
    -------
    list of ClaimedAudit
        In the order of the line; empty when nothing waits.
    """
    waiting = _lock_head(session, Stage.VERIFICATION, max_audits)
    # A source is read about four times (once a granularity, less what repeats), and a token has
    # about four characters: so this is close to the tokens of an audit's pairs.
    pair_tokens = cast(Extraction.claims, BigInteger) * Document.characters
    rows = session.execute(
        select(Audit.id, pair_tokens.label("tokens"))
        .join(Extraction, Extraction.audit_id == Audit.id)
        .join(Document, Document.id == Audit.document_id)
        .where(Audit.id.in_([row.id for row in waiting]))
    )
    costs = {row.id: row.tokens for row in rows}
    chosen = _cut(waiting, [costs[row.id] for row in waiting], token_budget)
    return _take(session, Stage.VERIFICATION, owner, chosen, lease_seconds)


def _lock_head(session: Session, stage: Stage, count: int) -> list[Any]:
    """Lock the first free audits of the line; those that others are claiming are passed over.

    Nobody takes what stands in tables of another version: it could not be written, or not be read.
    """
    require_this_version(session)
    statement = (
        select(Audit.id, Audit.worker_lost)
        .where(in_line_for(stage), is_free())
        .order_by(*order())
        .limit(count)
        .with_for_update(skip_locked=True)
    )
    return list(session.execute(statement))


def _cut(waiting: Sequence[Any], costs: Sequence[int], budget: int) -> list[int]:
    """Choose from the head of the line what fits the budget.

    An audit whose last worker was lost goes alone: if it kills the next one too, it takes no
    neighbour with it.
    """
    chosen: list[int] = []
    total = 0
    for row, cost in zip(waiting, costs, strict=True):
        total += cost
        if chosen and (total > budget or row.worker_lost):
            break
        chosen.append(row.id)
        if row.worker_lost:
            break
    return chosen


def _take(
    session: Session, stage: Stage, owner: str, ids: Sequence[int], lease_seconds: int
) -> list[ClaimedAudit]:
    if not ids:
        return []
    session.execute(
        update(Audit)
        .where(Audit.id.in_(ids))
        .values(
            {
                Audit.lease_owner: owner,
                Audit.lease_expires_at: expiry(lease_seconds),
                Audit.fencing_token: Audit.fencing_token + 1,
                Audit.attempts: Audit.attempts + 1,
            }
        )
        .execution_options(synchronize_session=False)
    )
    is_extracted = stage is Stage.VERIFICATION
    claims = _claims_of(session, ids) if is_extracted else {}
    generations = _generations_of(session, ids) if is_extracted else {}
    rows = session.execute(
        select(
            Audit, Document.text, PolicyVersion.name, PolicyVersion.rules, func.clock_timestamp()
        )
        .join(Document, Document.id == Audit.document_id)
        .join(PolicyVersion, PolicyVersion.id == Audit.policy_id)
        .where(Audit.id.in_(ids))
        .execution_options(populate_existing=True)
    )
    taken = {
        audit.id: ClaimedAudit(
            lease=Lease(audit.id, owner, audit.fencing_token),
            batch_id=audit.batch_id,
            worker_lost=audit.worker_lost,
            response=audit.response,
            context=audit.context,
            document_id=audit.document_id,
            source=source,
            policy=parse_policy({"name": name, **rules}),
            claims=tuple(claims.get(audit.id, ())),
            generations=generations.get(audit.id, ()),
            age_seconds=(now - audit.submitted_at).total_seconds(),
            waited_seconds=_waited_seconds(audit, stage, now),
        )
        for audit, source, name, rules, now in rows
    }
    return [taken[audit_id] for audit_id in ids]


def _generations_of(session: Session, ids: Sequence[int]) -> dict[int, tuple[GenerationTrail, ...]]:
    rows = session.execute(
        select(Extraction.audit_id, Extraction.generations).where(Extraction.audit_id.in_(ids))
    )
    return {
        audit_id: tuple(GenerationTrail.model_validate(call) for call in calls)
        for audit_id, calls in rows
    }


def _waited_seconds(audit: Audit, stage: Stage, now: datetime) -> float | None:
    if stage is Stage.EXTRACTION:
        since, started_at = audit.submitted_at, audit.extraction_started_at
    else:
        since, started_at = audit.extracted_at or audit.submitted_at, audit.verification_started_at
    return (now - since).total_seconds() if started_at is None else None


def _claims_of(session: Session, ids: Sequence[int]) -> dict[int, list[ResponseClaim]]:
    found: dict[int, list[ResponseClaim]] = {}
    rows = session.scalars(
        select(Claim).where(Claim.audit_id.in_(ids)).order_by(Claim.audit_id, Claim.position)
    )
    for row in rows:
        antecedent = None
        if row.antecedent_start is not None and row.antecedent_end is not None:
            antecedent = Span(row.antecedent_start, row.antecedent_end)
        claim = ResponseClaim(
            text=row.text,
            span=Span(row.span_start, row.span_end),
            origin=row.origin,
            has_name=row.has_name,
            has_number=row.has_number,
            has_date=row.has_date,
            antecedent=antecedent,
            part=row.part,
        )
        found.setdefault(row.audit_id, []).append(claim)
    return found
