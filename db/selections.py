"""Which completed audits a rescoring is about, as a value that can be stored and read back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ARRAY, BigInteger, ColumnElement, any_, func, literal, select
from sqlalchemy.orm import Session

from db.audit_filters import filtered
from db.models import Audit, Batch
from db.ownership import UNRESTRICTED, Caller
from db.policies import get_policy
from halldetect.errors import InputError
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome, Status

MOST_IDS = 10_000
_IDS_TOLD = 5


class Selection(BaseModel):
    """Completed audits that pass every filter that is given; without any, all of them.

    Parameters
    ----------
    ids : tuple of int, optional
        Exactly these audits.
    batch_id : int, optional
        Of this batch.
    label, outcome : optional
        As they stand under the policy that the audit was submitted with.
    policy : str, optional
        Name of that policy, in any version.
    custom_id : str, optional
        Exactly this one.
    submitted_from, submitted_before : datetime, optional
        Half-open range of the time of submission.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ids: tuple[int, ...] | None = Field(default=None, min_length=1, max_length=MOST_IDS)
    batch_id: int | None = None
    label: Label | None = None
    outcome: Outcome | None = None
    policy: str | None = None
    custom_id: str | None = None
    submitted_from: datetime | None = None
    submitted_before: datetime | None = None


class FixedSelection(BaseModel):
    """A selection at one moment: the same audits whenever it is read, whatever completes later.

    Parameters
    ----------
    selection : Selection
        The filters.
    completed_until : datetime
        Audits that completed later do not belong to it.
    first_id, last_id : int
        The lowest and the highest id in it; the last lies below the first when it is empty.
    api_key_id : int or None
        Only audits of this API key; None does not restrict.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    selection: Selection
    completed_until: datetime
    first_id: int
    last_id: int
    api_key_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def of_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls.model_validate(value)


def fix_selection(
    session: Session, selection: Selection, caller: Caller = UNRESTRICTED
) -> tuple[FixedSelection, int]:
    """Fix a selection of the caller's audits as it is now, and count them.

    Raises
    ------
    InputError
        An id is no completed audit's, or there is no such batch or policy.
    """
    _check(session, selection, caller)
    now = session.scalars(select(func.clock_timestamp())).one()
    count, first, last = session.execute(
        select(func.count(), func.min(Audit.id), func.max(Audit.id)).where(
            *_conditions(selection, now), caller.sees(Audit.api_key_id)
        )
    ).one()
    fixed = FixedSelection(
        selection=selection,
        completed_until=now,
        first_id=first or 1,
        last_id=last or 0,
        api_key_id=caller.restricted_to,
    )
    return fixed, count


def selected(fixed: FixedSelection) -> list[ColumnElement[bool]]:
    """Return the conditions on `Audit` that its audits meet."""
    conditions = [
        Audit.id >= fixed.first_id,
        Audit.id <= fixed.last_id,
        *_conditions(fixed.selection, fixed.completed_until),
    ]
    if fixed.api_key_id is not None:
        conditions.append(Audit.api_key_id == fixed.api_key_id)
    return conditions


def _conditions(selection: Selection, completed_until: datetime) -> list[ColumnElement[bool]]:
    conditions = [
        Audit.status == Status.COMPLETED,
        Audit.finished_at <= completed_until,
        *filtered(selection),
    ]
    if selection.ids is not None:
        conditions.append(_is_one_of(selection.ids))
    return conditions


def _is_one_of(ids: Sequence[int]) -> ColumnElement[bool]:
    """Compare with one array, whatever the number of ids: values of a statement are limited."""
    return Audit.id == any_(literal(list(ids), ARRAY(BigInteger)))


def _check(session: Session, selection: Selection, caller: Caller) -> None:
    """Refuse what selects nothing by mistake."""
    if selection.batch_id is not None:
        seen = (Batch.id == selection.batch_id, caller.sees(Batch.api_key_id))
        if session.scalar(select(Batch.id).where(*seen)) is None:
            raise InputError(f"there is no batch {selection.batch_id}")
    if selection.policy is not None:
        get_policy(session, selection.policy)
    if selection.ids is not None:
        completed = session.scalars(
            select(Audit.id).where(
                _is_one_of(selection.ids),
                Audit.status == Status.COMPLETED,
                caller.sees(Audit.api_key_id),
            )
        )
        missing = sorted(set(selection.ids) - set(completed))
        if missing:
            told = ", ".join(map(str, missing[:_IDS_TOLD]))
            more = f" and {len(missing) - _IDS_TOLD:,} others" * (len(missing) > _IDS_TOLD)
            raise InputError(f"ids: no completed audit has the id {told}{more}")
