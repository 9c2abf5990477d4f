import json

import pytest
from sqlalchemy import func, select, text
from typer.testing import CliRunner

from cli.main import app
from db.api_keys import SecretReplaced, find_key
from db.models import ApiKey, ApiKeySecret
from db.scopes import Scope


@pytest.fixture
def keys(database, tmp_path, monkeypatch):
    """Runs `halldetect keys` against the database."""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("HALLDETECT_HOME", str(tmp_path))
    return lambda *arguments: CliRunner().invoke(app, ["keys", *arguments])


def test_the_secret_stands_alone_on_standard_output(keys, sessions):
    done = keys("create", "night run", "--scope", "submit", "--scope", "read")
    assert done.exit_code == 0, done.stderr
    secret = done.stdout.removesuffix("\n")
    with sessions() as session:
        key = find_key(session, secret)
    assert (key.name, key.scopes) == ("night run", (Scope.SUBMIT, Scope.READ))
    assert "key 1 (night run) has the scopes submit, read" in done.stderr
    assert "not shown again" in done.stderr
    assert secret not in done.stderr


def test_json_holds_the_secret_once(keys, sessions):
    made = json.loads(keys("create", "a", "--scope", "review", "--json").stdout)
    assert made["scopes"] == ["review"]
    with sessions() as session:
        assert str(find_key(session, made["secret"]).id) == made["id"]
    listed = keys("list", "--json").stdout
    del made["secret"]
    assert json.loads(listed) == {"items": [made]}


def test_the_list_shows_names_scopes_and_times(keys):
    assert "there are no keys" in keys("list").stdout
    secret = keys("create", "night run", "--scope", "submit", "--scope", "read").stdout.strip()
    keys("create", "root", "--scope", "admin")
    keys("revoke", "1")
    shown = keys("list").stdout
    for word in ("night run", "submit, read", "root", "admin", "revoked", "UTC"):
        assert word in shown
    assert secret not in shown


def test_a_key_is_revoked_by_its_number(keys, sessions):
    keys("create", "a", "--scope", "read")
    done = keys("revoke", "1")
    assert done.exit_code == 0
    assert "key 1 (a) is revoked since 2" in done.stdout
    again = json.loads(keys("revoke", "1", "--json").stdout)
    with sessions() as session:
        assert again["revoked_at"] == session.scalar(select(ApiKey.revoked_at)).isoformat()


def test_a_rotated_key_gets_a_secret_that_stands_alone(keys, sessions):
    old = keys("create", "night run", "--scope", "read").stdout.strip()
    done = keys("rotate", "1")
    assert done.exit_code == 0, done.stderr
    secret = done.stdout.removesuffix("\n")
    with sessions() as session:
        assert find_key(session, secret) == find_key(session, old)
    assert "key 1 (night run) has a new secret; what it had before is accepted until 2" in (
        done.stderr
    )
    assert secret not in done.stderr
    shown = keys("list", "--json").stdout
    assert json.loads(shown)["items"][0]["older_secrets_until"] is not None
    assert secret not in shown
    assert old not in shown


def test_a_leaked_secret_is_replaced_at_once(keys, sessions):
    old = keys("create", "a", "--scope", "read").stdout.strip()
    made = json.loads(keys("rotate", "1", "--overlap", "0", "--json").stdout)
    with sessions() as session:
        assert str(find_key(session, made["secret"]).id) == made["id"]
        with pytest.raises(SecretReplaced):
            find_key(session, old)
    assert "is accepted no longer" in keys("rotate", "1", "--overlap", "0").stderr


@pytest.mark.parametrize(
    ("overlap", "minutes"), [("30m", 30), ("36h", 36 * 60), ("7d", 7 * 24 * 60)]
)
def test_the_overlap_is_a_span_of_time(keys, sessions, overlap, minutes):
    keys("create", "a", "--scope", "read")
    assert keys("rotate", "1", "--overlap", overlap).exit_code == 0
    with sessions() as session:
        ends, now = session.execute(
            select(func.max(ApiKeySecret.expires_at), func.clock_timestamp())
        ).one()
    assert minutes - 5 < (ends - now).total_seconds() / 60 <= minutes


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["create", "a"], "--scope"),
        (["create", "a", "--scope", "all"], "all"),
        (["create", "a\nb", "--scope", "read"], "the name of a key"),
        (["revoke", "7"], "there is no key 7"),
        (["rotate", "7"], "there is no key 7"),
        (["rotate", "1", "--overlap", "24"], "is no span of time"),
        (["rotate", "1", "--overlap", "-1h"], "is no span of time"),
        (["rotate", "1", "--overlap", "999999d"], "is no span of time"),
        (["revoke", "0"], "Usage: "),
        (["revoke", "hd_abc"], "Usage: "),
    ],
)
def test_what_cannot_be_done_is_told(keys, arguments, told):
    done = keys(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr


def test_without_a_database_it_says_how_to_name_one(keys, monkeypatch):
    monkeypatch.delenv("DATABASE_URL")
    done = keys("list")
    assert done.exit_code == 4
    assert "set DATABASE_URL" in done.stderr


LOSE_CONNECTION_AT_COMMIT = """
    CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER lost AFTER INSERT OR UPDATE ON halldetect.{table}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose_connection();
"""


@pytest.mark.parametrize(
    ("table", "arguments"),
    [
        ("api_keys", ("create", "b", "--scope", "read")),
        ("api_key_secrets", ("rotate", "1")),
        ("api_keys", ("revoke", "1")),
    ],
)
def test_a_loss_during_the_commit_leaves_open_what_was_done_and_says_so(
    keys, sessions, table, arguments
):
    keys("create", "a", "--scope", "read")
    with sessions.begin() as session:
        session.execute(text(LOSE_CONNECTION_AT_COMMIT.format(table=table)))
    done = keys(*arguments)
    assert done.exit_code == 4
    assert done.stdout == ""
    assert "whether it did what was asked is not known: `halldetect keys list`" in done.stderr
