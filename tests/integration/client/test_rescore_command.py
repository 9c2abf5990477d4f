"""`halldetect rescore` and `halldetect policies` against the API, with a maintenance worker."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest
from rescored_audits import rescorer
from sqlalchemy import select, text
from stored_audits import complete_waiting, submit_batch

from db.models import Rescoring, RescoringState
from halldetect.scoring.policy import BUILTIN_POLICIES

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks. A dragon lives in it."
LENIENT = {
    "name": "lenient",
    "rules": {"claim_value": "entailment", "aggregation": "mean", "response_threshold": 1.0},
}


@pytest.fixture
def batches(sessions, auditor):
    """Complete two batches: of two audits, and of one."""
    ids = [submit_batch(sessions, FALSE, TRUE), submit_batch(sessions, "Thanks!")]
    complete_waiting(sessions, auditor)
    return ids


@pytest.fixture
def maintenance(engine, sessions):
    """Work on every rescoring that is requested, until the test ends."""
    stop = threading.Event()
    waiting = select(Rescoring.id).where(Rescoring.state == RescoringState.WAITING)

    def work():
        while not stop.wait(0.05):
            with sessions.begin() as session:
                found = list(session.scalars(waiting))
            for rescoring_id in found:
                rescorer(engine).run(rescoring_id)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.fixture
def policy_file(tmp_path):
    def write(content):
        path = tmp_path / "policy.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


@pytest.fixture
def rescore(halldetect):
    """Run the command with --json and return what it prints."""

    def run(*arguments):
        done = halldetect("rescore", *arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run


@pytest.fixture
def refusal(halldetect, batches):
    """Run the command and return why it was refused."""

    def run(*arguments):
        done = halldetect("rescore", *arguments)
        assert done.exit_code == 2, done.output
        return done.stderr

    return run


def test_a_policy_file_is_tried_on_everything_and_the_changes_shown(
    halldetect, batches, maintenance, policy_file
):
    done = halldetect("rescore", "--policy-file", policy_file(LENIENT))
    assert done.exit_code == 0, done.output
    for shown in (
        "policy lenient (",
        "against the audits' own policies",
        "audits: label before, and after",
        "claims: verdict before, and after",
        "hallucinated before, faithful after",
        "r1",
    ):
        assert shown in done.stdout
    assert "faithful before, hallucinated after" not in done.stdout


def test_json_holds_the_rescoring_and_the_comparison(rescore, batches, maintenance, policy_file):
    document = rescore("--policy-file", policy_file(LENIENT))
    assert document["scoring"]["status"] == "completed"
    assert document["scoring"]["scored"] == 3
    assert document["comparison"]["labels"]["to_faithful"] == 1
    again = rescore("--policy", "lenient")
    assert (again["scoring"]["scored"], again["scoring"]["present"]) == (0, 3)
    assert again["comparison"] == document["comparison"]


def test_options_select_audits(rescore, batches, maintenance):
    def total(*arguments):
        return rescore("--policy", "paper", *arguments)["scoring"]["total"]

    assert total() == 3
    assert total("--batch", batches[0]) == 2
    assert total("--ids", "1, 3") == 2
    assert total("--label", "hallucinated") == 1
    assert total("--since", "2020-01-01") == 3
    assert total("--since", "2020-01-01", "--before", "2020-02-01T00:00:00+01:00") == 0


def test_a_policy_is_compared_with_another(rescore, batches, maintenance, policy_file):
    rescore("--policy-file", policy_file(LENIENT))
    document = rescore("--policy", "paper", "--against", "lenient", "--examples", "0")
    assert document["comparison"]["against"]["name"] == "lenient"
    assert document["comparison"]["labels"]["to_hallucinated"] > 0
    assert document["comparison"]["to_hallucinated"] == []


def test_skipped_audits_are_told_with_the_reason(halldetect, batches, maintenance, policy_file):
    fine = {"name": "fine", "rules": {**LENIENT["rules"], "granularities": [1024]}}
    done = halldetect("rescore", "--policy-file", policy_file(fine))
    assert done.exit_code == 0
    assert "skipped: 2 audits, their sources have no chunks" in done.stdout
    assert "such as audit 1)" in done.stdout


def test_a_failed_rescoring_is_a_fault_of_the_service(
    halldetect, batches, maintenance, monkeypatch
):
    def fault(*_):
        raise ValueError("no such thing")

    monkeypatch.setattr("worker.rescoring.score_fitting", fault)
    done = halldetect("rescore", "--policy", "paper")
    assert done.exit_code == 4
    assert "failed: ValueError: no such thing" in done.stderr


def test_an_interrupt_says_that_it_goes_on(halldetect, batches, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.rescore_command.time", SimpleNamespace(sleep=interrupt))
    done = halldetect("rescore", "--policy", "paper")
    assert done.exit_code == 130
    assert "rescoring 1 goes on" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ((), "either --policy NAME or --policy-file FILE"),
        (("--policy", "a", "--policy-file", "b"), "either --policy NAME or --policy-file FILE"),
        (("--policy", "nobody"), "no policy is called 'nobody'"),
        (("--policy", "paper", "--against", "nobody"), "no policy is called 'nobody'"),
        (("--policy", "paper", "--batch", "99"), "no batch 99"),
        (("--policy", "paper", "--ids", "1,99"), "the id 99"),
        (("--policy", "paper", "--ids", "1,x"), "--ids: 'x' is no audit"),
        (("--policy", "paper", "--ids", ","), "--ids: ',' is no audit"),
        (("--policy", "paper", "--ids", "0"), "--ids: '0' is no audit; write numbers from 1 to"),
        (("--policy", "paper", "--ids", "99999999999999999999"), "'99999999999999999999' is no"),
        (("--policy", "paper", "--ids", "9223372036854775808"), "write numbers from 1 to 92233"),
        (("--policy", "paper", "--ids", "7" * 5000), "'" + "7" * 40 + "… [4,960 more characters]'"),
        (("--policy", "paper", "--ids", "\udcff"), "--ids: '"),
        (("--policy", "paper", "--batch", "7" * 5000), "--batch"),
        (("--policy", "\udcff"), "--policy: has half of a surrogate pair at position 0"),
        (("--policy", "paper", "--against", "a\udcff"), "--against: has half of a surrogate pair"),
        (("--policy", "paper", "--since", "\udcff"), "--since: "),
        (("--policy", "paper", "--since", "March"), "--since: 'March' is no time"),
        (("--policy", "paper", "--before", "2026-13-01"), "--before: '2026-13-01' is no time"),
        (("--policy-file", "absent.json"), "absent.json cannot be read"),
    ],
)
def test_options_that_cannot_be_are_refused(refusal, maintenance, arguments, fault):
    assert fault in refusal(*arguments)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"name: strict", "policy.json: column 1: not valid JSON"),
        (b'{"name": "strict", "rules": {"margin": NaN}}', "NaN is no JSON number"),
        (b"[]", "a policy is a JSON object"),
        (b" " * 1_000_001, "it is no policy"),
        ({"name": "strict", "rules": {}}, "claim_value: Field required; aggregation: Field"),
        ({**LENIENT, "name": "paper"}, "comes with the program"),
    ],
)
def test_policy_files_that_cannot_be_are_refused(refusal, policy_file, stored, content, fault):
    assert fault in refusal("--policy-file", policy_file(content))
    assert stored("policies") == len(BUILTIN_POLICIES)


@pytest.fixture
def stored(sessions):
    def count(table):
        with sessions.begin() as session:
            return session.scalar(text(f"SELECT count(*) FROM halldetect.{table}"))

    return count


def test_policies_are_listed(halldetect, batches, maintenance, policy_file, rescore):
    rescore("--policy-file", policy_file(LENIENT))
    done = halldetect("policies")
    assert done.exit_code == 0
    for name in (*BUILTIN_POLICIES, "lenient"):
        assert name in done.stdout
    listed = json.loads(halldetect("policies", "--json").stdout)["items"]
    assert [item["name"] for item in listed] == sorted([*BUILTIN_POLICIES, "lenient"])
    assert listed[1]["rules"]["response_threshold"] == 1.0
