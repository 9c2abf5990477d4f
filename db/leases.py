"""Who works on which audit: leases that expire, and tokens that fence.

Postgres decides all of it, by its own clock. A claim raises the audit's fencing token; every later
write names the token, so a worker that lost its lease cannot write any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select, tuple_, update
from sqlalchemy.orm import Session

from db.line import Stage
from db.models import Audit
from halldetect.errors import HallDetectError
from halldetect.trail import Status
from halldetect.wording import counted


class LeaseLost(HallDetectError):
    """The audit is someone else's by now, or was cancelled: nothing was written."""


# What an audit that nobody holds has instead of a lease.
FREE: dict[str, Any] = {"lease_owner": None, "lease_expires_at": None, "lease_begun": False}


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one audit, for a while."""

    audit_id: int
    owner: str
    fencing_token: int


@dataclass(frozen=True, slots=True)
class LostAudit:
    """An audit whose worker was lost while it worked on it."""

    audit_id: int
    batch_id: int | None
    stage: Stage


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of audits whose worker was lost.

    Parameters
    ----------
    blameless : int
        Those that it had claimed and not begun.
    charged : tuple of LostAudit
        Those that are tried again, each alone.
    poison : tuple of LostAudit
        Those that have lost too many workers and failed.
    """

    blameless: int = 0
    charged: tuple[LostAudit, ...] = ()
    poison: tuple[LostAudit, ...] = ()

    @property
    def requeued(self) -> int:
        """How many wait again."""
        return self.blameless + len(self.charged)

    @property
    def failed(self) -> int:
        """How many have failed."""
        return len(self.poison)


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
        .values(lease_expires_at=expiry(lease_seconds))
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
        select(Audit.id, Audit.batch_id, Audit.status, Audit.faults, Audit.lease_begun)
        .where(Audit.lease_expires_at < func.clock_timestamp(), Audit.lease_owner.isnot(None))
        .with_for_update(skip_locked=True)
    )
    rows = list(session.execute(expired))
    begun = [row for row in rows if row.lease_begun]
    hopeless = [row for row in begun if row.faults + 1 >= max_attempts]
    suspect = [row for row in begun if row.faults + 1 < max_attempts]
    blameless = [row.id for row in rows if not row.lease_begun]
    _update(session, blameless, {**FREE, "attempts": Audit.attempts - 1})
    charged = {**FREE, "faults": Audit.faults + 1, "worker_lost": True}
    _update(session, [row.id for row in suspect], charged)
    reason = (
        f"its worker was lost {counted(max_attempts, 'time')} while it worked on this audit: the "
        "audit may exhaust the memory or crash a model; see the worker's log"
    )
    failed = {"status": Status.FAILED, "error": reason, "finished_at": func.clock_timestamp()}
    _update(session, [row.id for row in hopeless], {**charged, **failed})
    return Recovered(
        blameless=len(blameless),
        charged=tuple(_lost_audit(row) for row in suspect),
        poison=tuple(_lost_audit(row) for row in hopeless),
    )


def _lost_audit(row: Any) -> LostAudit:
    stage = next(stage for stage in Stage if stage.awaited_in == row.status)
    return LostAudit(row.id, row.batch_id, stage)


def held_by_owner(session: Session) -> dict[str, int]:
    """Return how many audits each worker holds."""
    owners = session.execute(
        select(Audit.lease_owner, func.count().label("audits"))
        .where(Audit.lease_owner.isnot(None))
        .group_by(Audit.lease_owner)
    )
    return {row.lease_owner: row.audits for row in owners}


def expire(session: Session, owner: str) -> None:
    """Let the leases of a worker that is known to be gone run out at once."""
    session.execute(
        update(Audit)
        .where(Audit.lease_owner == owner)
        .values(lease_expires_at=func.clock_timestamp())
        .execution_options(synchronize_session=False)
    )


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


def expiry(lease_seconds: int) -> ColumnElement[Any]:
    """Return when a lease that is taken or renewed now runs out, by the database's clock."""
    return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, lease_seconds)


def _update(session: Session, ids: Sequence[int], values: dict[str, Any]) -> None:
    if not ids:
        return
    session.execute(
        update(Audit)
        .where(Audit.id.in_(ids))
        .values(values)
        .execution_options(synchronize_session=False)
    )
