import json
from functools import partial

import pytest
from sqlalchemy import func, select, update

from cli.client import following, patience
from db.batches import cancel_batch
from db.models import Audit, Batch
from halldetect.trail import Status


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(patience, "SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(following, "_SECONDS_BETWEEN_LOOKS", 0.01)


def batches(sessions):
    with sessions() as session:
        return session.scalar(select(func.count()).select_from(Batch))


def stored(sessions, *columns):
    with sessions() as session:
        return session.execute(select(*columns).order_by(Audit.line)).all()


def end_audit(sessions, line, status):
    error = "odd" if status is Status.FAILED else None
    with sessions.begin() as session:
        session.execute(
            update(Audit)
            .where(Audit.line == line)
            .values(status=status, error=error, finished_at=func.clock_timestamp())
        )


def test_a_file_becomes_a_batch_and_the_answer_says_how_to_go_on(
    halldetect, write_records, sessions
):
    write_records("It opened in 1900.", "Nobody was hurt.", unknown="kept out")
    done = halldetect("submit", "in.jsonl", "--policy", "mean", "--priority", "-5")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("batch 1: 2 audits accepted\n")
    for command in ("status 1 --wait", "results 1", "cancel 1"):
        assert f"halldetect {command} " in done.stdout
    assert stored(sessions, Audit.line, Audit.custom_id, Audit.response, Audit.priority) == [
        (1, "r1", "It opened in 1900.", -5),
        (2, "r2", "Nobody was hurt.", -5),
    ]


def test_the_same_file_twice_on_purpose_makes_two_batches(halldetect, write_records, sessions):
    write_records("It opened in 1900.")
    ids = [json.loads(halldetect("submit", "in.jsonl", "--json").stdout)["id"] for _ in range(2)]
    assert ids[0] != ids[1]
    assert batches(sessions) == 2


def test_an_answer_that_is_lost_makes_no_second_batch(
    run, write_records, sessions, api_url, losing_the_first_answer
):
    write_records("It opened in 1900.")
    with losing_the_first_answer(api_url) as address:
        done = run(address, "submit", "in.jsonl")
    assert done.exit_code == 0, done.stderr
    assert "trying again" in done.stderr
    assert batches(sessions) == 1


def test_standard_input_is_a_file_too(halldetect, write_records, sessions):
    content = write_records("Café — 9 €.", "Nobody was hurt.")
    assert halldetect("submit", "-", stdin=content.encode()).exit_code == 0
    assert stored(sessions, Audit.custom_id) == [("r1",), ("r2",)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "S.", "response": "R.", }', "in.jsonl line 2: column"),
        ('{"source": "S.", "response": "\\udc00"}', "in.jsonl line 2: field response"),
        ('{"source": "S."}', "in.jsonl line 2: field response"),
        (
            '{"source": "S.", "response": "R.", "custom_id": "r1"}',
            "in.jsonl line 2: custom_id 'r1'",
        ),
        ('{"source": "S.", "response": "R.", "policy": "nope"}', "in.jsonl line 2: field policy"),
    ],
)
def test_a_line_at_fault_is_named_and_nothing_is_stored(
    halldetect, write_records, sessions, tmp_path, line, message
):
    content = write_records("It opened in 1900.")
    (tmp_path / "in.jsonl").write_text(f"{content}{line}\n", encoding="utf-8")
    done = halldetect("submit", "in.jsonl", "--wait")
    assert done.exit_code == 2
    assert done.stdout == ""
    first, last = done.stderr.splitlines()
    assert first.startswith(f"halldetect: {message}")
    assert last == "halldetect: in.jsonl: nothing was stored, since 1 line cannot be used"
    assert batches(sessions) == 0


def test_of_many_lines_at_fault_the_first_are_named_and_all_counted(halldetect, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b"[]\n" * 5)
    done = halldetect("submit", "in.jsonl")
    assert done.exit_code == 2
    assert [line[12:29] for line in done.stderr.splitlines()[:-1]] == [
        f"in.jsonl line {number}: " for number in (1, 2, 3)
    ]
    assert done.stderr.endswith("since 5 lines cannot be used (2 more are not listed)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("submit", "none.jsonl"), "none.jsonl: there is no such file"),
        (("submit", "in.jsonl", "--policy", "nope"), "no policy is called 'nope'"),
        (("submit", "empty.jsonl"), "the batch holds no record"),
        (("submit", "in.jsonl", "--fail-on", "hallucinated"), "--fail-on needs --wait"),
        (("status", "--wait"), "leave out --wait"),
        (("status", "99"), "there is no batch 99"),
        (("status", "99", "--wait"), "there is no batch 99"),
        (("results", "99"), "there is no batch 99"),
        (("cancel", "99"), "there is no batch 99"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    halldetect, write_records, tmp_path, arguments, message
):
    write_records("It opened in 1900.")
    (tmp_path / "empty.jsonl").touch()
    done = halldetect(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("batch", ["0", "-1", "x", str(2**63)])
def test_what_is_no_batch_is_a_usage_error(halldetect, batch):
    assert halldetect("status", "--", batch).exit_code == 2


def test_a_running_batch_is_described(halldetect, write_records, sessions):
    write_records("It opened in 1900.", "Nobody was hurt.", "It closed.")
    halldetect("submit", "in.jsonl")
    end_audit(sessions, 2, Status.FAILED)
    done = halldetect("status", "1")
    assert done.exit_code == 0
    assert "batch 1: in progress, 33% done" in done.stdout
    document = json.loads(halldetect("status", "1", "--json").stdout)
    assert (document["total"], document["waiting"], document["failed"]) == (3, 2, 1)


def test_waiting_ends_with_the_batch_and_tells_failures(
    halldetect, write_records, sessions, monkeypatch
):
    write_records("It opened in 1900.", "Nobody was hurt.")
    # What happens between one look at the batch and the next.
    happenings = iter(
        [partial(end_audit, sessions, 2, Status.FAILED), partial(_cancel_first, sessions)]
    )
    look, seen = following._look, []

    def look_and_let_happen(service, batch_id):
        found = look(service, batch_id)
        seen.append(found[0]["waiting"])
        next(happenings, lambda: None)()
        return found

    monkeypatch.setattr(following, "_look", look_and_let_happen)
    done = halldetect("submit", "in.jsonl", "--wait", "--json")
    assert seen == [2, 1, 0]
    assert done.exit_code == 2
    document = json.loads(done.stdout)
    assert (document["status"], document["failed"], document["cancelled"]) == ("cancelled", 1, 1)
    assert "halldetect: batch 1: 2 audits accepted" in done.stderr
    assert "1 audit failed and 1 audit cancelled" in done.stderr


def _cancel_first(sessions):
    with sessions.begin() as session:
        cancel_batch(session, 1)


def test_cancelling_keeps_what_is_finished(halldetect, write_records, sessions):
    write_records("It opened in 1900.", "Nobody was hurt.", "It closed.")
    halldetect("submit", "in.jsonl")
    end_audit(sessions, 1, Status.FAILED)
    done = halldetect("cancel", "1")
    assert done.exit_code == 0
    assert done.stdout == "batch 1: 2 audits cancelled, the result of 1 stays\n"
    document = json.loads(halldetect("cancel", "1", "--json").stdout)
    assert (document["failed"], document["cancelled"]) == (1, 2)


def test_a_batch_that_was_over_is_not_cancelled(halldetect, write_records, sessions):
    write_records("It opened in 1900.")
    halldetect("submit", "in.jsonl")
    end_audit(sessions, 1, Status.FAILED)
    assert "was over already" in halldetect("cancel", "1").stdout


def test_results_come_whole_and_in_the_order_of_the_file(
    halldetect, write_records, sessions, tmp_path
):
    write_records(*(f"Line {number}." for number in range(1, 251)))
    halldetect("submit", "in.jsonl")
    end_audit(sessions, 7, Status.FAILED)
    done = halldetect("results", "1", "--out", "out.jsonl")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert "249 of its 250 audits were waiting" in done.stderr
    results = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [result["line"] for result in results] == list(range(1, 251))
    assert [result["custom_id"] for result in results] == [f"r{n}" for n in range(1, 251)]
    assert (results[6]["status"], results[6]["error"]) == ("failed", "odd")
    printed = halldetect("results", "1").stdout
    assert printed.encode() == (tmp_path / "out.jsonl").read_bytes()


def test_a_service_that_is_not_there_has_an_exit_code_of_its_own(run, write_records, monkeypatch):
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)
    write_records("It opened in 1900.")
    for arguments in (("submit", "in.jsonl"), ("status", "1"), ("results", "1"), ("cancel", "1")):
        done = run("http://127.0.0.1:9", *arguments)
        assert done.exit_code == 4
        assert "no service answers at http://127.0.0.1:9" in done.stderr


def test_a_policy_that_is_no_text_is_refused(halldetect, write_records):
    write_records("The mill opened in 1900.")
    done = halldetect("submit", "in.jsonl", "--policy", "\udcff")
    assert done.exit_code == 2
    assert "--policy: has half of a surrogate pair at position 0" in done.stderr
