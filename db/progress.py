"""How an audit goes on or ends: each write only by the holder of its lease."""

from __future__ import annotations

from datetime import date
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.leases import FREE, Lease, LeaseLost, held
from db.models import Audit
from db.storable_texts import storable_error
from halldetect.trail import Status
from halldetect.wording import counted


def fail_audit(session: Session, lease: Lease, error: str) -> None:
    """End an audit that cannot be made, with the reason.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's.
    """
    write_fenced(
        session,
        lease,
        status=Status.FAILED,
        error=storable_error(error),
        finished_at=func.clock_timestamp(),
        faults=Audit.faults + 1,
        **FREE,
    )


def charge_fault(session: Session, lease: Lease, error: str, max_attempts: int) -> bool:
    """Count an error that another attempt may not meet; return whether it was the last one.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's.
    """
    faults = session.scalar(select(Audit.faults).where(held(lease)).with_for_update())
    if faults is None:
        raise _lost(lease)
    if faults + 1 >= max_attempts:
        fail_audit(session, lease, f"failed {counted(max_attempts, 'time')}, lastly: {error}")
        return True
    write_fenced(session, lease, faults=Audit.faults + 1, **FREE)
    return False


def write_fenced(session: Session, lease: Lease, **values: Any) -> date:
    """Update an audit that is still held, and return the month it belongs to.

    Raises
    ------
    LeaseLost
        When the audit is no longer the worker's.
    """
    month = session.scalar(
        update(Audit)
        .where(held(lease))
        .values(**values)
        .returning(Audit.month)
        .execution_options(synchronize_session=False)
    )
    if month is None:
        raise _lost(lease)
    return month


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"audit {lease.audit_id} is no longer held by {lease.owner} under token "
        f"{lease.fencing_token}: it was taken over or cancelled"
    )
