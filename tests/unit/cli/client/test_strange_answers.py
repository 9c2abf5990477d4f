"""Answers in JSON that are none of the service's: told as such by every command, never a fault."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cli.main import app

COMMANDS = [
    ("status", "1"),
    ("status", "1", "--wait"),
    ("submit", "in.jsonl"),
    ("results", "1"),
    ("cancel", "1"),
    ("failed",),
    ("failed", "--json"),
    ("failed", "--batch", "1"),
    ("retry", "1"),
    ("retry", "--batch", "1"),
    ("policies",),
    ("rescore", "--policy", "mean"),
    ("review", "1"),
    ("webhooks", "list"),
    ("webhooks", "list", "--json"),
    ("webhooks", "add", "https://hooks.example.org"),
    ("webhooks", "rotate", "1"),
]
STRANGE = [
    {},
    {"items": 5, "next_cursor": 7},
    {"items": [5], "next_cursor": None},
    {"id": [], "retried": "x", "items": [None], "secret": 5, "older_secrets_until": "x"},
]


@pytest.mark.parametrize("document", STRANGE, ids=json.dumps)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_is_told_that_no_service_of_this_version_answers(
    serving, steps, monkeypatch, tmp_path, command, document
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("{}\n", encoding="utf-8")
    with serving(steps["answer"](200, document)) as (address, _):
        monkeypatch.setenv("HALLDETECT_API_URL", address)
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 4, done.stderr
    assert "is this a HallDetect service of the same version?" in done.stderr


@pytest.mark.parametrize("flagged", [{}, {"id": "1", "fedscore": None}])
def test_a_strange_list_of_what_was_flagged_is_told_after_the_batch(
    serving, steps, batch, monkeypatch, flagged
):
    state = batch(status="completed", waiting=0, failed=0, completed=10)
    page = {"items": [flagged], "next_cursor": None}
    with serving(steps["answer"](200, state), steps["answer"](200, page)) as (address, _):
        monkeypatch.setenv("HALLDETECT_API_URL", address)
        done = CliRunner().invoke(app, ["status", "12", "--wait"])
    assert done.exit_code == 4, done.stderr
    assert "hallucinated" in done.stdout
    assert "is this a HallDetect service of the same version?" in done.stderr


@pytest.mark.parametrize(
    "members",
    [
        {"errors": [{"line": "x", "message": "odd"}]},
        {"errors": [{"line": 1, "message": None}], "total_errors": "x"},
        {"errors": [{"line": [1], "message": "odd"}, 5], "total_errors": []},
        {"errors": 5},
    ],
)
def test_a_refusal_that_lists_strange_faults_is_a_refusal(
    serving, steps, monkeypatch, tmp_path, members
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("{}\n", encoding="utf-8")
    with serving(steps["problem"](422, "it is refused", **members)) as (address, _):
        monkeypatch.setenv("HALLDETECT_API_URL", address)
        done = CliRunner().invoke(app, ["submit", "in.jsonl"])
    assert done.exit_code == 2, done.stderr
