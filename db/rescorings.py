"""Rescorings: jobs that score a selection of audits under a policy, and how far each has come.

A job is worked on chunk by chunk, in the order of the audits' ids. Each chunk is one transaction
that stores scorings and moves the job on, so a job that is interrupted anywhere goes on where it
was. Two workers on one job would only repeat each other: a lock keeps the second away, and should
the lock be lost, the slower of the two cannot move the job on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session

from db.models import PolicyVersion, Rescoring, RescoringState
from db.ownership import UNRESTRICTED, Caller
from db.policies import StoredPolicy, stored_policy
from db.selections import FixedSelection, Selection, fix_selection
from db.storable_texts import storable_error
from halldetect.errors import HallDetectError

_FINAL = (RescoringState.COMPLETED, RescoringState.FAILED)
# Half of the key of a job's lock; idempotency keys are locked under seed 0.
_LOCK_SEED = 1


class RescoringOvertaken(HallDetectError):
    """Another worker has moved the job on: nothing was written."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Audits that cannot be scored under the policy, for one reason.

    Parameters
    ----------
    audits : int
        How many.
    example : int
        The first of them.
    """

    audits: int
    example: int


@dataclass(frozen=True, slots=True)
class RescoringStatus:
    """A rescoring, as it stands.

    Parameters
    ----------
    id : int
        The job.
    policy : StoredPolicy
        What it scores with.
    selection : FixedSelection
        What it scores.
    state : RescoringState
        How far it is.
    total : int
        Audits that it is about. Those that are deleted meanwhile are in none of the counts below.
    scored, present, skipped : int
        Audits that it has scored, that had this score before, and that cannot have it.
    skips : dict
        The skipped ones, by the reason.
    last_audit_id : int
        The audit that it goes on after.
    error : str or None
        Why it failed.
    created_at, finished_at : datetime
        When it was requested and when it ended.
    """

    id: int
    policy: StoredPolicy
    selection: FixedSelection
    state: RescoringState
    total: int
    scored: int
    present: int
    skipped: int
    skips: dict[str, Skip]
    last_audit_id: int
    error: str | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be done."""
        return self.state in _FINAL


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """What came of one chunk of a rescoring.

    Parameters
    ----------
    last_audit_id : int
        Of the chunk.
    scored, present : int
        Audits; see `RescoringStatus`.
    skips : mapping
        Those that cannot be scored, by the reason.
    """

    last_audit_id: int
    scored: int
    present: int
    skips: Mapping[str, Skip]


def create_rescoring(
    session: Session,
    policy: StoredPolicy,
    selection: Selection,
    *,
    caller: Caller = UNRESTRICTED,
) -> RescoringStatus:
    """Store a request to score a selection of the caller's audits under a policy.

    Raises
    ------
    InputError
        The selection names what is not there.
    """
    fixed, total = fix_selection(session, selection, caller)
    job = Rescoring(
        policy_id=policy.id,
        api_key_id=caller.api_key_id,
        selection=fixed.to_json(),
        total=total,
        last_audit_id=fixed.first_id - 1,
    )
    session.add(job)
    session.flush()
    session.refresh(job)
    return _status(job, policy)


def get_rescoring(
    session: Session, rescoring_id: int, *, caller: Caller = UNRESTRICTED
) -> RescoringStatus | None:
    """Return a rescoring as it stands, or None when the caller has none of that id."""
    found = session.execute(
        select(Rescoring, PolicyVersion)
        .join(PolicyVersion, PolicyVersion.id == Rescoring.policy_id)
        .where(Rescoring.id == rescoring_id, caller.sees(Rescoring.api_key_id))
        .execution_options(populate_existing=True)
    ).one_or_none()
    return None if found is None else _status(found[0], stored_policy(found[1]))


def begin_rescoring(session: Session, rescoring_id: int) -> RescoringStatus | None:
    """Take a rescoring up, or up again; None when there is none that is not over."""
    begun = session.scalar(
        update(Rescoring)
        .where(Rescoring.id == rescoring_id, Rescoring.state.not_in(_FINAL))
        .values(state=RescoringState.RUNNING, active_at=func.clock_timestamp())
        .returning(Rescoring.id)
    )
    return None if begun is None else get_rescoring(session, rescoring_id)


def advance_rescoring(
    session: Session, rescoring_id: int, after_audit_id: int, outcome: ChunkOutcome
) -> None:
    """Count one chunk, in the transaction that stores its scorings.

    Raises
    ------
    RescoringOvertaken
        The job does not stand at `after_audit_id` any more; roll back.
    """
    job = session.get(Rescoring, rescoring_id, with_for_update=True, populate_existing=True)
    if job is None or job.state in _FINAL or job.last_audit_id != after_audit_id:
        raise RescoringOvertaken(
            f"rescoring {rescoring_id} no longer stands at audit {after_audit_id}"
        )
    job.last_audit_id = outcome.last_audit_id
    job.scored += outcome.scored
    job.present += outcome.present
    job.skips = _merged(job.skips, outcome.skips)
    job.skipped = sum(skip["audits"] for skip in job.skips.values())
    # An audit may have been completing while the selection was counted.
    job.total = max(job.total, job.scored + job.present + job.skipped)
    job.active_at = func.clock_timestamp()
    session.flush()


def complete_rescoring(session: Session, rescoring_id: int) -> None:
    """End a rescoring that has nothing left to do."""
    _end(session, rescoring_id, state=RescoringState.COMPLETED)


def fail_rescoring(session: Session, rescoring_id: int, error: str) -> None:
    """End a rescoring that cannot go on; what it has stored stays."""
    _end(session, rescoring_id, state=RescoringState.FAILED, error=storable_error(error))


def claim_stalled_rescorings(session: Session, idle_seconds: float) -> list[int]:
    """Return the rescorings that need a wake-up: not over, and idle for so long.

    They count as active from now on, so that whoever asks again does not wake them once more.
    """
    idle_since = func.clock_timestamp() - timedelta(seconds=idle_seconds)
    return list(
        session.scalars(
            update(Rescoring)
            .where(Rescoring.state.not_in(_FINAL), Rescoring.active_at < idle_since)
            .values(active_at=func.clock_timestamp())
            .returning(Rescoring.id)
        )
    )


@contextmanager
def rescoring_lock(engine: Engine, rescoring_id: int) -> Iterator[bool]:
    """Hold the right to work on a rescoring for the block; yields whether it is ours.

    It belongs to a connection of its own, and ends with it however that ends.
    """
    key = func.hashtextextended(f"rescoring {rescoring_id}", _LOCK_SEED)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        is_ours = bool(connection.scalar(select(func.pg_try_advisory_lock(key))))
        try:
            yield is_ours
        finally:
            if is_ours:
                connection.execute(select(func.pg_advisory_unlock(key)))


def _end(session: Session, rescoring_id: int, **values: Any) -> None:
    session.execute(
        update(Rescoring)
        .where(Rescoring.id == rescoring_id, Rescoring.state.not_in(_FINAL))
        .values(finished_at=func.clock_timestamp(), **values)
        .execution_options(synchronize_session=False)
    )


def _merged(stored: Mapping[str, Any], new: Mapping[str, Skip]) -> dict[str, Any]:
    merged = dict(stored)
    for reason, skip in new.items():
        before = merged.get(reason, {"audits": 0, "example": skip.example})
        merged[reason] = {**before, "audits": before["audits"] + skip.audits}
    return merged


def _status(job: Rescoring, policy: StoredPolicy) -> RescoringStatus:
    return RescoringStatus(
        id=job.id,
        policy=policy,
        selection=FixedSelection.of_json(job.selection),
        state=job.state,
        total=job.total,
        scored=job.scored,
        present=job.present,
        skipped=job.skipped,
        skips={reason: Skip(**skip) for reason, skip in sorted(job.skips.items())},
        last_audit_id=job.last_audit_id,
        error=job.error,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )
