"""Policies: named, and never changed; other rules under an old name are a new version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session

from db.models import PolicyVersion
from halldetect.errors import PolicyError
from halldetect.scoring.policy import BUILTIN_POLICIES, Policy, parse_policy


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy and its row."""

    id: int
    policy: Policy
    created_at: datetime


def seed_builtin_policies(session: Session) -> None:
    """Store the policies that come with the program, unless they are there."""
    for policy in BUILTIN_POLICIES.values():
        _store(session, policy)


def create_policy(session: Session, policy: Policy) -> tuple[StoredPolicy, bool]:
    """Store a policy and return it, and whether it is new; the newest version of its name.

    Other rules under a name that is taken are a new version, and the old one stays; the same
    rules again are the version that is there.

    Raises
    ------
    PolicyError
        The name is that of a built-in policy with other rules, or the rules are those of an older
        version, which cannot become the newest again.
    """
    builtin = BUILTIN_POLICIES.get(policy.name)
    if builtin is not None and builtin.version != policy.version:
        raise PolicyError(
            f"policy {policy.name!r} comes with the program and has other rules: take another name"
        )
    is_new = _store(session, policy)
    newest = get_policy(session, policy.name)
    if newest.policy.version != policy.version:
        raise PolicyError(
            f"policy {policy.name!r} had these rules (version {policy.version}) before it got "
            f"others (version {newest.policy.version}): take another name to use them again"
        )
    return newest, is_new


def find_policy(session: Session, name: str) -> StoredPolicy | None:
    """Return the newest version of the policy of that name."""
    row = session.scalar(_newest().where(PolicyVersion.name == name))
    return None if row is None else stored_policy(row)


def get_policy(session: Session, name: str) -> StoredPolicy:
    """Return the newest version of the policy of that name.

    Raises
    ------
    PolicyError
        There is none; the message lists the names there are.
    """
    found = find_policy(session, name)
    if found is None:
        raise unknown_policy(name, [stored.policy.name for stored in list_policies(session)])
    return found


def unknown_policy(name: str, known: list[str]) -> PolicyError:
    """Word the error for a name that is no policy's."""
    return PolicyError(f"no policy is called {name!r}; there are: {', '.join(sorted(known))}")


def list_policies(session: Session) -> list[StoredPolicy]:
    """Return the newest version of every policy, by name."""
    return [stored_policy(row) for row in session.scalars(_newest())]


def stored_policy(row: PolicyVersion) -> StoredPolicy:
    """Read a row."""
    return StoredPolicy(row.id, parse_policy({"name": row.name, **row.rules}), row.created_at)


def _store(session: Session, policy: Policy) -> bool:
    """Store a policy unless it is there, and tell whether it was not."""
    stored = session.execute(
        insert(PolicyVersion)
        .values(
            name=policy.name,
            version=policy.version,
            rules=policy.model_dump(mode="json", exclude={"name"}),
        )
        .on_conflict_do_nothing()
        .returning(PolicyVersion.id)
    )
    return stored.scalar() is not None


def _newest() -> Select[PolicyVersion]:
    return (
        select(PolicyVersion)
        .ext(distinct_on(PolicyVersion.name))
        .order_by(PolicyVersion.name, PolicyVersion.id.desc())
    )
