"""The commands against an API that asks for keys."""

from __future__ import annotations

import json

import pytest

from cli.client import patience
from db.api_keys import create_key, revoke_key
from db.scopes import Scope

COMMANDS = [
    ["submit", "in.jsonl"],
    ["status", "1"],
    ["results", "1"],
    ["cancel", "1"],
    ["webhooks", "add", "https://hooks.example.org"],
    ["webhooks", "list"],
    ["webhooks", "remove", "1"],
    ["policies"],
    ["rescore", "--policy", "mean"],
    ["review", "1", "--reviewer", "ada"],
    ["failed"],
    ["retry", "1"],
    ["retry", "--batch", "1"],
]
SUBMITTING = ["submit", "cancel", "rescore", "retry", ["webhooks", "add"], ["webhooks", "remove"]]


@pytest.fixture(autouse=True)
def _keys_in_force(monkeypatch):
    monkeypatch.setenv("HALLDETECT_API_KEYS_REQUIRED", "true")
    monkeypatch.setattr(patience, "SHORTEST_PAUSE", 0.0)


@pytest.fixture
def use_key(sessions, monkeypatch):
    """Make a key and set it as the user's; return its id and secret."""

    def use(*scopes):
        with sessions.begin() as session:
            key, secret = create_key(session, "a", scopes)
        monkeypatch.setenv("HALLDETECT_API_KEY", secret)
        return key.id, secret

    return use


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_key_it_says_which_variable_to_set(halldetect, write_records, command):
    write_records("It opened in 1900.")
    done = halldetect(*command)
    assert done.exit_code == 2
    assert "send an API key" in done.stderr
    assert "set HALLDETECT_API_KEY" in done.stderr


def test_a_revoked_key_is_told(halldetect, use_key, sessions):
    key_id, secret = use_key(Scope.ADMIN)
    with sessions.begin() as session:
        revoke_key(session, key_id)
    done = halldetect("policies")
    assert done.exit_code == 2
    assert "was revoked on" in done.stderr
    assert "HALLDETECT_API_KEY is not accepted" in done.stderr
    assert secret not in done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_missing_scope_is_named(halldetect, write_records, use_key, command):
    write_records("It opened in 1900.")
    use_key(Scope.REVIEW)
    done = halldetect(*command)
    assert done.exit_code == 2
    wanted = "submit" if command[:2] in SUBMITTING or command[0] in SUBMITTING else "read"
    assert f"lacks the scope '{wanted}'" in done.stderr
    assert "(HALLDETECT_API_KEY)" in done.stderr


def test_with_a_key_they_work_and_see_their_own(halldetect, write_records, use_key):
    write_records("It opened in 1900.", "Nobody was hurt.")
    use_key(Scope.SUBMIT, Scope.READ)
    batch = json.loads(halldetect("submit", "in.jsonl", "--json").stdout)["id"]
    assert halldetect("status", batch).exit_code == 0
    assert len(halldetect("results", batch).stdout.splitlines()) == 2
    use_key(Scope.SUBMIT, Scope.READ)
    for command in ("status", "results", "cancel"):
        done = halldetect(command, batch)
        assert done.exit_code == 2
        assert f"there is no batch {batch}" in done.stderr
    use_key(Scope.ADMIN)
    assert halldetect("cancel", batch).exit_code == 0


@pytest.mark.parametrize("secret", ["hunter2", "hd_a\r\nX-Other: b", "hd_caf\xe9"])
def test_what_is_no_key_is_not_sent_and_not_shown(halldetect, monkeypatch, secret):
    monkeypatch.setenv("HALLDETECT_API_KEY", secret)
    done = halldetect("policies")
    assert done.exit_code == 2
    assert "HALLDETECT_API_KEY is no API key" in done.stderr
    assert secret not in done.stderr


def test_an_empty_variable_sets_no_key(halldetect, monkeypatch):
    monkeypatch.setenv("HALLDETECT_API_KEY", "")
    assert "set HALLDETECT_API_KEY" in halldetect("policies").stderr
