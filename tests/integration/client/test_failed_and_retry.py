import json

import pytest
from sqlalchemy import text

from cli.client import failed_command, service


@pytest.fixture
def fail(sessions):
    def run(*lines):
        with sessions.begin() as session:
            session.execute(
                text(
                    "UPDATE halldetect.audits SET status = 'failed', finished_at = now(),"
                    " faults = 3, attempts = 4, error = 'reason ' || line || chr(27)"
                    " WHERE line = ANY(:lines)"
                ),
                {"lines": list(lines)},
            )

    return run


@pytest.fixture
def batch(halldetect, write_records):
    write_records("It opened in 1900.", "Nobody was hurt.", "It closed.")
    halldetect("submit", "in.jsonl")


def test_what_failed_is_listed_newest_first_over_all_pages(halldetect, batch, fail, monkeypatch):
    monkeypatch.setattr(service, "_PAGE", 1)
    fail(1, 3)
    done = halldetect("failed")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[::2]] == [
        "audit 3 (batch 1 line 3 r3)",
        "audit 1 (batch 1 line 1 r1)",
    ]
    assert all(line.endswith("attempts 4, faults 3") for line in lines[::2])
    assert [line.strip() for line in lines[1::2]] == ["reason 3\\x1b", "reason 1\\x1b"]
    assert "2 failed audits" in done.stderr
    items = [json.loads(line) for line in halldetect("failed", "--json").stdout.splitlines()]
    assert [(item["id"], item["faults"]) for item in items] == [("3", 3), ("1", 3)]


@pytest.mark.parametrize(
    ("arguments", "shown", "remainder"),
    [
        (["--limit", "1"], 1, "these are the newest 1, and there are more"),
        (["--limit", "2", "--batch", "1"], 2, "these are the newest 2 of 3, and there are more"),
        (["--limit", "1", "--json"], 1, "these are the newest 1, and there are more"),
        (["--limit", "3"], 3, None),
        (["--json"], 3, None),
        ([], 2, "these are the newest 2, and there are more"),
    ],
)
def test_a_long_list_ends_and_says_so(
    halldetect, batch, fail, monkeypatch, arguments, shown, remainder
):
    monkeypatch.setattr(service, "_PAGE", 1)
    monkeypatch.setattr(failed_command, "_MOST_AS_TEXT", 2)
    fail(1, 2, 3)
    done = halldetect("failed", *arguments)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == (shown if "--json" in arguments else 2 * shown)
    assert "there are more" not in done.stderr if remainder is None else remainder in done.stderr


def test_the_largest_number_lists_all_and_a_larger_one_is_refused(halldetect, batch, fail):
    fail(1, 2, 3)
    assert len(halldetect("failed", "--limit", str(2**63 - 1)).stdout.splitlines()) == 6
    done = halldetect("failed", "--limit", str(2**63))
    assert done.exit_code == 2
    assert "less than or equal to" in done.stderr


def test_a_batch_can_be_chosen(halldetect, batch, fail):
    halldetect("submit", "in.jsonl")
    fail(2)
    done = halldetect("failed", "--batch", "2", "--json")
    assert [json.loads(line)["batch_id"] for line in done.stdout.splitlines()] == ["2"]
    assert "halldetect retry --batch 2" in done.stderr
    assert halldetect("failed", "--batch", "9").exit_code == 2


def test_without_failures_the_list_is_empty(halldetect, batch):
    done = halldetect("failed")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "halldetect: 0 failed audits\n"


def test_audits_are_retried_and_the_others_named(halldetect, batch, fail):
    fail(1, 3)
    done = halldetect("retry", 1, 2, 3, 9)
    assert done.exit_code == 2
    assert done.stdout.splitlines() == [
        "audit 1: waits again, for its claims",
        "audit 3: waits again, for its claims",
    ]
    assert "audit 2 is queued" in done.stderr
    assert "there is no audit 9" in done.stderr
    assert halldetect("failed", "--json").stdout == ""


def test_a_batch_is_retried(halldetect, batch, fail):
    fail(1, 3)
    done = halldetect("retry", "--batch", "1")
    assert done.exit_code == 0
    assert done.stdout.startswith("batch 1: 2 audits wait again")
    again = halldetect("retry", "--batch", "1")
    assert again.exit_code == 2
    assert "no audit of batch 1 has failed" in again.stderr


@pytest.mark.parametrize("arguments", [[], ["1", "--batch", "1"], ["0"], ["x"]])
def test_what_names_nothing_to_retry_is_refused(halldetect, arguments):
    assert halldetect("retry", *arguments).exit_code == 2
