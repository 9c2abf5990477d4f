import json

import pytest

from cli.client import patience
from cli.client.batch_report import report_end

PAGE = {
    "items": [
        {"id": str(number), "line": number, "custom_id": f"case-{number}", "fedscore": number / 10}
        for number in range(1, 8)
    ],
    "next_cursor": None,
}


@pytest.fixture
def report(service, steps, batch):
    def run(fail_on_hallucinated=False, as_json=False, answers=(), **fields):
        over = {"status": "completed", "waiting": 0, "failed": 0, "completed": 10, **fields}
        with service(*(answers or [steps["answer"](200, PAGE)])) as (client, _):
            return report_end(
                client,
                batch(**over),
                as_json=as_json,
                fail_on_hallucinated=fail_on_hallucinated,
            )

    return run


@pytest.mark.parametrize(
    ("fields", "fail_on_hallucinated", "code"),
    [
        ({}, False, 0),
        ({}, True, 1),
        ({"hallucinated": 0}, True, 0),
        ({"failed": 1}, True, 2),
        ({"cancelled": 1, "status": "cancelled"}, False, 2),
    ],
)
def test_the_exit_code_tells_done_from_done_with_failures(
    report, capsys, fields, fail_on_hallucinated, code
):
    assert report(fail_on_hallucinated, **fields) == code
    assert ("results 12` says which and why" in capsys.readouterr().err) is (code == 2)


def test_the_highest_scores_are_listed_highest_first(report, capsys):
    report()
    output = capsys.readouterr().out
    named = [line.split()[2] for line in output.splitlines() if "case-" in line]
    assert named == ["case-7", "case-6", "case-5", "case-4", "case-3"]


def test_json_is_the_services_own_document(report, batch, capsys):
    report(as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document == batch(status="completed", waiting=0, failed=0, completed=10)


def test_a_service_that_is_away_for_a_moment_is_waited_for(report, steps, capsys, monkeypatch):
    monkeypatch.setattr(patience, "SHORTEST_PAUSE", 0.0)
    answers = (steps["problem"](503, "starting"), steps["answer"](200, PAGE))
    assert report(True, answers=answers) == 1
    assert "case-7" in capsys.readouterr().out


def test_what_the_batch_came_to_outlives_the_service(report, steps, capsys, monkeypatch):
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)
    assert report(True, answers=[steps["problem"](503, "gone for good")]) == 1
    written = capsys.readouterr()
    assert "batch 12: completed" in written.out
    assert "gone for good; `halldetect results 12` prints what was flagged" in written.err


@pytest.mark.parametrize(
    ("failed", "cancelled", "words"),
    [
        (1, 0, "batch 12: 1 audit failed;"),
        (2000, 1, "batch 12: 2,000 audits failed and 1 audit cancelled;"),
        (0, 2, "batch 12: 2 audits cancelled;"),
    ],
)
def test_counts_and_words_agree(report, capsys, failed, cancelled, words):
    report(failed=failed, cancelled=cancelled)
    assert words in capsys.readouterr().err
