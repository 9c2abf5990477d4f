"""API keys: their secrets are told once and stored as digests."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import select

from db.api_keys import create_key, find_key, list_keys, revoke_key
from db.key_models import ApiKey
from db.scopes import Scope
from halldetect.errors import InputError


@pytest.fixture
def session(sessions):
    with sessions.begin() as session:
        yield session


def test_a_secret_is_256_random_bits_and_only_its_digest_is_stored(session):
    made = [create_key(session, "night run", [Scope.READ]) for _ in range(3)]
    secrets = [secret for _, secret in made]
    assert len(set(secrets)) == 3
    for _, secret in made:
        assert secret.startswith("hd_")
        assert len(secret) == len("hd_") + 43  # 32 bytes in base64
    stored = session.scalars(select(ApiKey.sha256).order_by(ApiKey.id)).all()
    assert stored == [hashlib.sha256(secret.encode()).digest() for secret in secrets]


def test_a_key_is_found_by_its_secret_alone(session):
    key, secret = create_key(session, "a", [Scope.READ])
    create_key(session, "b", [Scope.READ])
    assert find_key(session, secret) == key
    for other in ("", "hd_", secret[:-1], secret + " ", secret.lower(), "\udcff", str(key.id)):
        assert find_key(session, other) is None


def test_scopes_stand_once_and_in_order_and_admin_is_all(session):
    key, _ = create_key(session, "a", [Scope.READ, Scope.SUBMIT, Scope.READ])
    assert key.scopes == (Scope.SUBMIT, Scope.READ)
    assert [key.may(scope) for scope in Scope] == [True, True, False, False]
    admin, _ = create_key(session, "root", [Scope.ADMIN])
    assert all(admin.may(scope) for scope in Scope)


def test_a_revoked_key_stays_in_the_list_with_the_first_time(session):
    key, secret = create_key(session, "a", [Scope.READ])
    create_key(session, "a", [Scope.READ])
    revoked = revoke_key(session, key.id)
    assert revoked.revoked_at is not None
    assert revoke_key(session, key.id) == revoked
    assert find_key(session, secret) == revoked
    assert [one.revoked_at for one in list_keys(session)] == [revoked.revoked_at, None]
    assert revoke_key(session, 99) is None


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "a\0b", "\x1b[2J", "x" * 201, "\ud800"])
def test_names_are_short_and_printable(session, name):
    with pytest.raises(InputError, match="the name of a key"):
        create_key(session, name, [Scope.READ])


def test_a_key_without_scope_is_of_no_use(session):
    with pytest.raises(InputError, match="needs a scope: submit, read, review, admin"):
        create_key(session, "a", [])
