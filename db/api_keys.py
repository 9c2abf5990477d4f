"""API keys: made, listed, revoked, and recognised by their secrets."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from db.key_models import LONGEST_NAME, ApiKey
from db.scopes import Scope
from halldetect.errors import InputError
from halldetect.record import text_fault

PREFIX = "hd_"
_SECRET_BYTES = 32
# A write for every request would cost more than it tells.
_USE_IS_NOTED_EVERY = timedelta(minutes=1)
_NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key without its secret, which nobody can be told any more.

    Parameters
    ----------
    id : int
        The key.
    name : str
        Whose it is, or what for.
    scopes : tuple of Scope
        What it may be used for.
    created_at : datetime
        When it was made.
    last_used_at : datetime or None
        When it was last used, to within a minute.
    revoked_at : datetime or None
        Since when it is no longer accepted.
    """

    id: int
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    def may(self, scope: Scope) -> bool:
        """Tell whether it may be used for `scope`; `admin` includes the others."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def create_key(session: Session, name: str, scopes: Collection[Scope]) -> tuple[StoredKey, str]:
    """Make a key and return it with its secret, which is stored nowhere.

    Raises
    ------
    InputError
        The name cannot be stored, or there is no scope.
    """
    _check_name(name)
    if not scopes:
        raise InputError(f"a key needs a scope: {', '.join(Scope)}")
    secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    row = ApiKey(
        name=name,
        sha256=_digest(secret),
        scopes=[scope.value for scope in Scope if scope in scopes],
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    return _stored(row), secret


def list_keys(session: Session) -> list[StoredKey]:
    """Return all keys, revoked ones too, oldest first."""
    return [_stored(row) for row in session.scalars(select(ApiKey).order_by(ApiKey.id))]


def revoke_key(session: Session, key_id: int) -> StoredKey | None:
    """Accept a key no longer; None when there is none of that id. Twice is as good as once."""
    row = session.get(ApiKey, key_id, with_for_update={"key_share": True}, populate_existing=True)
    if row is None:
        return None
    if row.revoked_at is None:
        row.revoked_at = session.scalars(select(func.clock_timestamp())).one()
        session.flush()
    return _stored(row)


def find_key(session: Session, secret: str) -> StoredKey | None:
    """Return the key of a secret, revoked or not; None when it is no key's.

    The row is looked up by the digest of the secret, of which nothing can be learnt by measuring
    time; what is found is compared in constant time all the same.
    """
    digest = _digest(secret)
    row = session.scalar(select(ApiKey).where(ApiKey.sha256 == digest))
    is_same = hmac.compare_digest(digest, _NO_DIGEST if row is None else row.sha256)
    return _stored(row) if row is not None and is_same else None


def note_use(session: Session, key_id: int) -> None:
    """Note that a key is used now, unless that was noted within the last minute."""
    now = func.clock_timestamp()
    session.execute(
        update(ApiKey)
        .where(
            ApiKey.id == key_id,
            or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < now - _USE_IS_NOTED_EVERY),
        )
        .values(last_used_at=now)
        .execution_options(synchronize_session=False)
    )


def _check_name(name: str) -> None:
    fault = text_fault(name)
    if fault is None and not name.isprintable():
        fault = "has characters that cannot be printed"
    if fault is None and name != name.strip():
        fault = "begins or ends with white space"
    if fault is None and not 1 <= len(name) <= LONGEST_NAME:
        fault = f"has {len(name)} characters; 1 to {LONGEST_NAME} are allowed"
    if fault is not None:
        raise InputError(f"the name of a key {fault}")


def _digest(secret: str) -> bytes:
    # 256 random bits need neither salt nor a slow function: nobody can go through them.
    return hashlib.sha256(secret.encode("utf-8", errors="surrogateescape")).digest()


def _stored(row: ApiKey) -> StoredKey:
    return StoredKey(
        id=row.id,
        name=row.name,
        scopes=tuple(Scope(scope) for scope in row.scopes),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
