"""API keys: their secrets are told once and stored as digests."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from db.api_keys import (
    SecretReplaced,
    create_key,
    find_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from db.models import ApiKeySecret
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
    stored = session.scalars(select(ApiKeySecret.sha256).order_by(ApiKeySecret.id)).all()
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


DAY = timedelta(days=1)


def test_a_rotated_key_is_known_by_both_secrets_and_stays_itself(session):
    key, old = create_key(session, "a", [Scope.READ, Scope.SUBMIT])
    other, others = create_key(session, "b", [Scope.READ])
    rotated, new = rotate_key(session, key.id, DAY)
    assert new != old
    assert replace(rotated, older_secrets_until=None) == key
    assert find_key(session, old) == find_key(session, new) == rotated
    assert find_key(session, others) == other
    now = session.scalar(select(func.clock_timestamp()))
    assert timedelta(0) < now + DAY - rotated.older_secrets_until < timedelta(minutes=5)


def test_without_an_overlap_the_old_secret_is_replaced_at_once(session):
    key, old = create_key(session, "a", [Scope.READ])
    rotated, new = rotate_key(session, key.id, timedelta(0))
    with pytest.raises(SecretReplaced) as caught:
        find_key(session, old)
    assert caught.value.expired_at == rotated.older_secrets_until
    assert find_key(session, new) == rotated


def test_a_secret_is_replaced_when_its_time_is_over(session):
    key, old = create_key(session, "a", [Scope.READ])
    rotate_key(session, key.id, DAY)
    session.execute(
        update(ApiKeySecret)
        .where(ApiKeySecret.expires_at.is_not(None))
        .values(expires_at=ApiKeySecret.expires_at - DAY)
    )
    with pytest.raises(SecretReplaced):
        find_key(session, old)


def test_rotating_twice_lengthens_no_secrets_time_and_shortens_it_when_told(session):
    key, first = create_key(session, "a", [Scope.READ])
    once, second = rotate_key(session, key.id, DAY)
    twice, third = rotate_key(session, key.id, 2 * DAY)
    for secret in (first, second, third):  # a rotation whose secret was lost can be repeated
        assert find_key(session, secret) == twice
    ends = session.scalars(select(ApiKeySecret.expires_at).order_by(ApiKeySecret.id)).all()
    assert ends == [once.older_secrets_until, twice.older_secrets_until, None]
    rotate_key(session, key.id, timedelta(0))
    for secret in (first, second, third):
        with pytest.raises(SecretReplaced):
            find_key(session, secret)


def test_revoking_ends_every_secret_and_no_rotation_lets_the_key_in_again(session):
    key, old = create_key(session, "a", [Scope.READ])
    _, new = rotate_key(session, key.id, DAY)
    revoked = revoke_key(session, key.id)
    assert find_key(session, old) == find_key(session, new) == revoked
    with pytest.raises(InputError, match="was revoked: make another"):
        rotate_key(session, key.id, DAY)
    assert rotate_key(session, 99, DAY) is None


def test_of_two_rotations_at_once_each_tells_a_secret_that_works(sessions):
    with sessions.begin() as session:
        key, _ = create_key(session, "a", [Scope.READ])
    made = []

    def rotate():
        with sessions.begin() as session:
            made.append(rotate_key(session, key.id, DAY)[1])

    threads = [threading.Thread(target=rotate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sessions() as session:
        assert [find_key(session, secret).id for secret in made] == [key.id] * 4


def test_a_rotation_that_is_not_committed_changes_nothing(sessions):
    with sessions.begin() as session:
        key, old = create_key(session, "a", [Scope.READ])
    with sessions() as session:
        _, new = rotate_key(session, key.id, timedelta(0))
        session.rollback()
    with sessions() as session:
        assert find_key(session, old) == key
        assert find_key(session, new) is None
