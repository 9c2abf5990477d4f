"""`halldetect webhooks` against the real API."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import text

from cli.moments import moment_text
from db.webhook_secrets import MOST_SECRETS

URL = "https://hooks.example.org/halldetect"


def test_a_webhook_is_added_listed_and_removed(halldetect):
    added = halldetect("webhooks", "add", URL)
    assert added.exit_code == 0
    assert added.stdout.startswith("whsec_")
    assert len(added.stdout.splitlines()) == 1
    assert "webhook 1 is called for every batch from the next one on" in added.stderr
    assert halldetect("webhooks", "list").stdout == f"webhook 1: {URL}\n"
    removed = halldetect("webhooks", "remove", "1")
    assert (removed.exit_code, removed.stdout) == (0, "webhook 1 is deleted\n")
    assert "there are no webhooks" in halldetect("webhooks", "list").stdout


def test_json_is_what_the_api_answers(halldetect):
    added = json.loads(halldetect("webhooks", "add", URL, "--json").stdout)
    assert added["secret"].startswith("whsec_")
    [listed] = json.loads(halldetect("webhooks", "list", "--json").stdout)["items"]
    assert {**listed, "secret": added["secret"]} == {
        **added,
        "older_secrets_until": None,
        "deliveries": [],
    }


def test_deliveries_are_listed(halldetect, write_records, sessions):
    halldetect("webhooks", "add", URL)
    write_records("It opened in 1900.")
    for _ in range(3):
        halldetect("submit", "in.jsonl")
    with sessions.begin() as session:
        session.execute(
            text(
                "UPDATE halldetect.webhook_deliveries SET state = 'failed', attempts = 8,"
                " due_since = now(), finished_at = now(),"
                " last_attempt_at = '2026-03-01', last_status = 503,"
                " last_error = 'it answered 503' WHERE batch_id = 1"
            )
        )
        session.execute(
            text(
                "UPDATE halldetect.webhook_deliveries SET state = 'due', attempts = 2,"
                " due_since = now(), last_attempt_at = '2026-03-01 00:05+01',"
                " next_attempt_at = '2026-03-01 12:30',"
                " last_error = 'it answered 502' WHERE batch_id = 2"
            )
        )
    assert halldetect("webhooks", "list").stdout.splitlines() == [
        f"webhook 1: {URL}",
        "  batch 3: waiting",
        "  batch 2: due, attempt 2 at 2026-02-28 23:05 UTC, it answered 502, "
        "next attempt at 2026-03-01 12:30 UTC",
        "  batch 1: failed, attempt 8 at 2026-03-01 00:00 UTC, it answered 503",
    ]


def test_a_secret_is_replaced(halldetect):
    old = halldetect("webhooks", "add", URL).stdout
    rotated = halldetect("webhooks", "rotate", "1", "--overlap", "2h")
    assert rotated.exit_code == 0
    assert rotated.stdout.startswith("whsec_")
    assert len(rotated.stdout.splitlines()) == 1
    assert rotated.stdout != old
    [listed] = json.loads(halldetect("webhooks", "list", "--json").stdout)["items"]
    until = moment_text(datetime.fromisoformat(listed["older_secrets_until"]))
    assert f"webhook 1 has a new secret; what it had before signs until {until}, too" in " ".join(
        rotated.stderr.split()
    )
    assert halldetect("webhooks", "list").stdout == (
        f"webhook 1: {URL}, signed with older secrets, too, until {until}\n"
    )
    document = json.loads(halldetect("webhooks", "rotate", "1", "--json").stdout)
    assert set(document) == {"id", "secret", "older_secrets_until"}
    again = halldetect("webhooks", "rotate", "1", "--overlap", "0")
    assert "what it had before signs no longer" in again.stderr
    assert halldetect("webhooks", "list").stdout == f"webhook 1: {URL}\n"


def test_a_rotation_that_cannot_be_is_told_with_exit_code_2(halldetect):
    halldetect("webhooks", "add", URL)
    nowhere = halldetect("webhooks", "rotate", "7")
    assert (nowhere.exit_code, nowhere.stdout) == (2, "")
    assert "there is no webhook 7" in nowhere.stderr
    odd = halldetect("webhooks", "rotate", "1", "--overlap", "soon")
    assert (odd.exit_code, odd.stdout) == (2, "")
    for _ in range(MOST_SECRETS - 1):
        halldetect("webhooks", "rotate", "1")
    refused = halldetect("webhooks", "rotate", "1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "with a shorter overlap" in refused.stderr


def test_a_long_address_is_one_line(halldetect):
    url = f"https://hooks.example.org/{'path-' * 80}"
    halldetect("webhooks", "add", url)
    assert halldetect("webhooks", "list").stdout == f"webhook 1: {url}\n"


def test_what_is_refused_is_told_with_exit_code_2(halldetect):
    refused = halldetect("webhooks", "add", "https://10.0.0.1/")
    assert refused.exit_code == 2
    assert "10.0.0.1 is not a public address" in refused.stderr
    nowhere = halldetect("webhooks", "add", "")
    assert nowhere.exit_code == 2
    assert "url: is empty" in nowhere.stderr
    gone = halldetect("webhooks", "remove", "7")
    assert gone.exit_code == 2
    assert "there is no webhook 7" in gone.stderr
