"""What audits can be filtered by, wherever they are listed or selected."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from sqlalchemy import BigInteger, ColumnElement, any_, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from db.models import Audit, PolicyVersion
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome


class Filters(Protocol):
    """Filters that all audits have; one that is None does not filter."""

    @property
    def batch_id(self) -> int | None:
        """Of this batch."""

    @property
    def label(self) -> Label | None:
        """Under the policy that the audit was submitted with."""

    @property
    def outcome(self) -> Outcome | None:
        """As it stands."""

    @property
    def policy(self) -> str | None:
        """Name of the policy that the audit was submitted with, in any version."""

    @property
    def custom_id(self) -> str | None:
        """Exactly this one."""

    @property
    def submitted_from(self) -> datetime | None:
        """Begin of a half-open range of the time of submission."""

    @property
    def submitted_before(self) -> datetime | None:
        """End of the range."""


def filtered(filters: Filters) -> list[ColumnElement[bool]]:
    """Return the conditions on `Audit` that the filters come to."""
    wanted = {
        Audit.batch_id: filters.batch_id,
        Audit.label: filters.label,
        Audit.outcome: filters.outcome,
        Audit.custom_id: filters.custom_id,
    }
    conditions: list[ColumnElement[bool]] = [
        column == value for column, value in wanted.items() if value is not None
    ]
    if filters.policy is not None:
        versions = select(PolicyVersion.id).where(PolicyVersion.name == filters.policy)
        # As an array: joined to it, every audit would be compared with every version.
        array = func.array(versions.scalar_subquery(), type_=ARRAY(BigInteger))
        conditions.append(Audit.policy_id == any_(array))
    if filters.submitted_from is not None:
        conditions.append(Audit.submitted_at >= filters.submitted_from)
    if filters.submitted_before is not None:
        conditions.append(Audit.submitted_at < filters.submitted_before)
    return conditions
