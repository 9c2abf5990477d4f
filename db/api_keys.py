"""API keys: made, listed, rotated, revoked, and recognised by their secrets."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session, aliased

from db.models import ApiKey, ApiKeySecret
from db.models.keys import LONGEST_NAME
from db.scopes import Scope
from halldetect.errors import InputError
from halldetect.record import text_fault
from halldetect.wording import counted

PREFIX = "hd_"
_SECRET_BYTES = 32
# A write for every request would cost more than it tells.
_USE_IS_NOTED_EVERY = timedelta(minutes=1)
_NO_DIGEST = bytes(32)


class SecretReplaced(Exception):
    """A secret was a key's until the key was rotated, and is accepted no longer.

    Parameters
    ----------
    expired_at : datetime
        Since when.
    """

    def __init__(self, expired_at: datetime) -> None:
        super().__init__(f"replaced, and not accepted since {expired_at}")
        self.expired_at = expired_at


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key without its secrets, which nobody can be told any more.

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
    older_secrets_until : datetime or None
        Until when secrets that were replaced are, or were, accepted beside the newest.
    """

    id: int
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    older_secrets_until: datetime | None

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
    row = ApiKey(name=name, scopes=[scope.value for scope in Scope if scope in scopes])
    session.add(row)
    session.flush()
    return _only(session, row.id), _add_secret(session, row.id)


def list_keys(session: Session) -> list[StoredKey]:
    """Return all keys, revoked ones too, oldest first."""
    return [_stored(*row) for row in session.execute(_KEYS.order_by(ApiKey.id))]


def revoke_key(session: Session, key_id: int) -> StoredKey | None:
    """Accept a key no longer; None when there is none of that id. Twice is as good as once."""
    row = _locked(session, key_id)
    if row is None:
        return None
    if row.revoked_at is None:
        row.revoked_at = session.scalars(select(func.clock_timestamp())).one()
        session.flush()
    return _only(session, key_id)


def rotate_key(session: Session, key_id: int, overlap: timedelta) -> tuple[StoredKey, str] | None:
    """Give a key a new secret and return both; None when there is no key of that id.

    The secrets it had are accepted for `overlap` from now on, or as long as an earlier rotation
    said, if that ends sooner.

    Raises
    ------
    InputError
        The key was revoked: a new secret would let it in again.
    """
    row = _locked(session, key_id)
    if row is None:
        return None
    if row.revoked_at is not None:
        raise InputError(f"key {key_id} was revoked: make another with `halldetect keys create`")
    ends_at = session.scalars(select(func.clock_timestamp() + overlap)).one()
    session.execute(
        update(ApiKeySecret)
        .where(
            ApiKeySecret.api_key_id == key_id,
            or_(ApiKeySecret.expires_at.is_(None), ApiKeySecret.expires_at > ends_at),
        )
        .values(expires_at=ends_at)
        .execution_options(synchronize_session=False)
    )
    secret = _add_secret(session, key_id)
    return _only(session, key_id), secret


def find_key(session: Session, secret: str) -> StoredKey | None:
    """Return the key of a secret, revoked or not; None when it is no key's.

    The row is looked up by the digest of the secret, of which nothing can be learnt by measuring
    time; what is found is compared in constant time all the same.

    Raises
    ------
    SecretReplaced
        It was the key's before a rotation, and is accepted no longer.
    """
    digest = secret_digest(secret)
    row = session.execute(
        _KEYS.join(ApiKeySecret, ApiKeySecret.api_key_id == ApiKey.id)
        .add_columns(
            ApiKeySecret.sha256,
            ApiKeySecret.expires_at,
            (ApiKeySecret.expires_at <= func.clock_timestamp()).label("is_over"),
        )
        .where(ApiKeySecret.sha256 == digest)
        .execution_options(populate_existing=True)
    ).one_or_none()
    is_same = hmac.compare_digest(digest, _NO_DIGEST if row is None else row.sha256)
    if row is None or not is_same:
        return None
    key = _stored(row.ApiKey, row.older_secrets_until)
    if row.is_over and key.revoked_at is None:
        raise SecretReplaced(row.expires_at)
    return key


def secret_digest(secret: str) -> bytes:
    """Return what is stored of a secret."""
    # 256 random bits need neither salt nor a slow function: nobody can go through them.
    return hashlib.sha256(secret.encode("utf-8", errors="surrogateescape")).digest()


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
        fault = f"has {counted(len(name), 'character')}; 1 to {LONGEST_NAME} are allowed"
    if fault is not None:
        raise InputError(f"the name of a key {fault}")


_AnySecret = aliased(ApiKeySecret)
_KEYS = select(
    ApiKey,
    select(func.max(_AnySecret.expires_at))
    .where(_AnySecret.api_key_id == ApiKey.id)
    .scalar_subquery()
    .label("older_secrets_until"),
)


def _only(session: Session, key_id: int) -> StoredKey:
    statement = _KEYS.where(ApiKey.id == key_id).execution_options(populate_existing=True)
    return _stored(*session.execute(statement).one())


def _locked(session: Session, key_id: int) -> ApiKey | None:
    return session.get(ApiKey, key_id, with_for_update={"key_share": True}, populate_existing=True)


def _add_secret(session: Session, key_id: int) -> str:
    secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    session.add(ApiKeySecret(api_key_id=key_id, sha256=secret_digest(secret)))
    session.flush()
    return secret


def _stored(key: ApiKey, older_secrets_until: datetime | None) -> StoredKey:
    return StoredKey(
        id=key.id,
        name=key.name,
        scopes=tuple(Scope(scope) for scope in key.scopes),
        created_at=key.created_at,
        last_used_at=key.last_used_at,
        revoked_at=key.revoked_at,
        older_secrets_until=older_secrets_until,
    )
