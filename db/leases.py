"""Who works on which audit: claims in order, leases that expire, and tokens that fence.

Postgres decides all of it, by its own clock. A claim raises the audit's fencing token; every later
write names the token, so a worker that lost its lease cannot write any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, cast, func, select, text, tuple_, update
from sqlalchemy.orm import Session

from db.models import Audit, Claim, Document, Extraction, PolicyVersion
from halldetect.claims.model import Claim as ResponseClaim
from halldetect.errors import HallDetectError
from halldetect.scoring.policy import Policy, parse_policy
from halldetect.spans import Span
from halldetect.trail import Status


class LeaseLost(HallDetectError):
    """The audit is someone else's by now, or was cancelled: nothing was written."""


# What an audit that nobody holds has instead of a lease.
FREE: dict[str, Any] = {"lease_owner": None, "lease_expires_at": None, "lease_begun": False}


class Stage(StrEnum):
    """What a worker does to an audit."""

    EXTRACTION = "extraction"
    VERIFICATION = "verification"

    @property
    def awaited_in(self) -> Status:
        """The status of audits that wait for this stage."""
        return Status.QUEUED if self is Stage.EXTRACTION else Status.EXTRACTED


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one audit, for a while."""

    audit_id: int
    owner: str
    fencing_token: int


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


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of audits whose worker was lost."""

    requeued: int
    failed: int


def is_free() -> ColumnElement[bool]:
    """Return the condition that nobody holds an audit."""
    return Audit.lease_owner.is_(None)


def in_line_for(stage: Stage) -> ColumnElement[bool]:
    """Return the condition that an audit waits for a stage, in anybody's hands or nobody's."""
    # The literal, not a parameter: only so does the planner see that the partial index fits.
    return text(f"halldetect.audits.status = '{stage.awaited_in.value}'")  # type: ignore[return-value]


def _order() -> tuple[Any, ...]:
    """Return who goes first: priority, then single audits before batches, then first come."""
    return (Audit.priority.desc(), Audit.batch_id.isnot(None), Audit.id)


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
    """Lock the first free audits of the line; those that others are claiming are passed over."""
    statement = (
        select(Audit.id, Audit.worker_lost)
        .where(in_line_for(stage), is_free())
        .order_by(*_order())
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
                Audit.lease_expires_at: _expiry(lease_seconds),
                Audit.fencing_token: Audit.fencing_token + 1,
                Audit.attempts: Audit.attempts + 1,
            }
        )
        .execution_options(synchronize_session=False)
    )
    claims = _claims_of(session, ids) if stage is Stage.VERIFICATION else {}
    rows = session.execute(
        select(Audit, Document.text, PolicyVersion.name, PolicyVersion.rules)
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
        )
        for audit, source, name, rules in rows
    }
    return [taken[audit_id] for audit_id in ids]


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


def _expiry(lease_seconds: int) -> ColumnElement[Any]:
    return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, lease_seconds)


def held(lease: Lease) -> ColumnElement[bool]:
    """Return the condition that a lease is still its owner's."""
    return and_(
        Audit.id == lease.audit_id,
        Audit.lease_owner == lease.owner,
        Audit.fencing_token == lease.fencing_token,
    )


def _any_held(leases: Sequence[Lease]) -> ColumnElement[bool]:
    keys = [(lease.audit_id, lease.owner, lease.fencing_token) for lease in leases]
    return tuple_(Audit.id, Audit.lease_owner, Audit.fencing_token).in_(keys)


def begin(session: Session, stage: Stage, leases: Sequence[Lease]) -> set[int]:
    """Note that work on audits begins; return the ids of those that are still held.

    Only what was begun can be at fault when a worker is lost.
    """
    if not leases:
        return set()
    started = (
        Audit.extraction_started_at if stage is Stage.EXTRACTION else Audit.verification_started_at
    )
    statement = (
        update(Audit)
        .where(_any_held(leases))
        .values({Audit.lease_begun: True, started: func.clock_timestamp()})
        .returning(Audit.id)
        .execution_options(synchronize_session=False)
    )
    return set(session.scalars(statement))


def renew(session: Session, leases: Sequence[Lease], lease_seconds: int) -> set[int]:
    """Lengthen leases; return the ids of the audits that are still held.

    A lease that ran out is renewed too, as long as nobody took the audit away.
    """
    if not leases:
        return set()
    statement = (
        update(Audit)
        .where(_any_held(leases))
        .values(lease_expires_at=_expiry(lease_seconds))
        .returning(Audit.id)
        .execution_options(synchronize_session=False)
    )
    return set(session.scalars(statement))


def release(session: Session, leases: Sequence[Lease], *, begun: bool) -> None:
    """Hand audits back at once; nobody is at fault.

    Parameters
    ----------
    leases : sequence of Lease
        Those lost meanwhile are passed over.
    begun : bool
        Whether work on them began; if not, the attempt is given back too.
    """
    if not leases:
        return
    session.execute(
        update(Audit)
        .where(_any_held(leases))
        .values(
            **FREE,
            attempts=Audit.attempts - (0 if begun else 1),
        )
        .execution_options(synchronize_session=False)
    )


def recover_expired(session: Session, max_attempts: int) -> Recovered:
    """Put audits whose worker was lost back into the line, or fail those that lost too many.

    Those that the worker had claimed and not begun are back as if it had never taken them.

    Parameters
    ----------
    max_attempts : int
        Faults at which an audit fails.
    """
    expired = (
        select(Audit.id, Audit.faults, Audit.lease_begun)
        .where(Audit.lease_expires_at < func.clock_timestamp(), Audit.lease_owner.isnot(None))
        .with_for_update(skip_locked=True)
    )
    rows = list(session.execute(expired))
    begun = [row for row in rows if row.lease_begun]
    hopeless = [row.id for row in begun if row.faults + 1 >= max_attempts]
    suspect = [row.id for row in begun if row.faults + 1 < max_attempts]
    blameless = [row.id for row in rows if not row.lease_begun]
    _update(session, blameless, {**FREE, "attempts": Audit.attempts - 1})
    charged = {**FREE, "faults": Audit.faults + 1, "worker_lost": True}
    _update(session, suspect, charged)
    reason = (
        f"its worker was lost {max_attempts} times while it worked on this audit: the audit "
        "may exhaust the memory or crash a model; see the worker's log"
    )
    failed = {"status": Status.FAILED, "error": reason, "finished_at": func.clock_timestamp()}
    _update(session, hopeless, {**charged, **failed})
    return Recovered(requeued=len(blameless) + len(suspect), failed=len(hopeless))


def expire(session: Session, owner: str) -> None:
    """Let the leases of a worker that is known to be gone run out at once."""
    session.execute(
        update(Audit)
        .where(Audit.lease_owner == owner)
        .values(lease_expires_at=func.clock_timestamp())
        .execution_options(synchronize_session=False)
    )


def _update(session: Session, ids: Sequence[int], values: dict[str, Any]) -> None:
    if not ids:
        return
    session.execute(
        update(Audit)
        .where(Audit.id.in_(ids))
        .values(values)
        .execution_options(synchronize_session=False)
    )


def waiting(session: Session, stage: Stage) -> int:
    """Return how many audits wait for a stage and are nobody's."""
    statement = select(func.count()).select_from(Audit).where(in_line_for(stage), is_free())
    return session.scalars(statement).one()


def is_waiting(session: Session, stage: Stage) -> bool:
    """Tell whether anything waits for a stage."""
    return head_of_line(session, stage) is not None


def head_of_line(session: Session, stage: Stage) -> tuple[int, int | None] | None:
    """Return (audit id, batch id) of the audit that is claimed next, or None."""
    statement = (
        select(Audit.id, Audit.batch_id)
        .where(in_line_for(stage), is_free())
        .order_by(*_order())
        .limit(1)
    )
    row = session.execute(statement).one_or_none()
    return None if row is None else (row.id, row.batch_id)
