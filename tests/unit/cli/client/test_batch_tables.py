import io

import pytest
from rich.console import Console

from cli.client.batch_state import parse_batch_state
from cli.client.batch_tables import FlaggedAudit, batch_table, flagged_table, progress_line
from cli.client.errors import ServiceError
from cli.client.status_command import show_batch
from cli.client.throughput import Throughput
from halldetect.settings import Settings


@pytest.fixture
def printed():
    def render(item):
        stream = io.StringIO()
        Console(file=stream, width=100).print(item)
        return stream.getvalue()

    return render


def rows(text):
    cells = [line.strip("│").split("│") for line in text.splitlines() if line.startswith("│")]
    return {name.strip(): value.strip() for name, value in cells}


def test_the_line_tallies_what_there_is_and_nothing_else(batch):
    moments = iter([0.0, 10.0])
    throughput = Throughput(lambda: next(moments))
    throughput.note(4)
    throughput.note(6)
    line = progress_line(parse_batch_state(batch()), throughput)
    assert line.plain == (
        "6 of 10 audits, 2 faithful, 2 hallucinated, 1 without claims, 1 failed, claims of 7 "
        "known; claims: 9 supported, 2 contradicted, 3 unsupported; 0.2 audits/s, "
        "about 0:00:20 left"
    )
    fresh = batch(
        waiting=10, extracted=0, failed=0, hallucinated=0, faithful=0, no_checkable_claims=0,
        supported=0, contradicted=0, unsupported=0,
    )  # fmt: skip
    assert progress_line(parse_batch_state(fresh), Throughput()).plain == "0 of 10 audits"


@pytest.mark.parametrize(
    ("running", "words"),
    [
        (
            {"id": "7", "stage": "verification", "claims": 1234, "seconds": 312.4},
            "; audit 7 in verification of 1,234 claims for 0:05:12",
        ),
        (
            {"id": "7", "stage": "extraction", "claims": None, "seconds": 31.0},
            "; audit 7 in extraction for 0:00:31",
        ),
        ({"id": "7", "stage": "extraction", "claims": None, "seconds": 29.0}, "known"),
        (None, "known"),
    ],
)
def test_an_audit_that_takes_long_is_named(batch, running, words):
    counts = dict.fromkeys(("supported", "contradicted", "unsupported"), 0)
    state = parse_batch_state(batch(longest_running=running, **counts))
    assert progress_line(state, Throughput()).plain.endswith(words)


def test_whoever_asks_hears_what_has_been_in_work_longest(serving, steps, batch, capsys):
    running = {"id": "7", "stage": "verification", "claims": 1, "seconds": 2.0}
    with serving(steps["answer"](200, batch(longest_running=running))) as (address, _):
        show_batch(12, Settings(api_url=address), wait=False, as_json=False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "longest in work: audit 7 in verification of 1 claim for 0:00:02"


def test_the_table_of_a_running_batch(batch, printed):
    text = printed(batch_table(parse_batch_state(batch())))
    assert text.startswith("batch 12: in progress, 60% done")
    assert rows(text) == {
        "audits": "10",
        "hallucinated": "2",
        "faithful": "2",
        "no checkable claims": "1",
        "failed": "1",
        "waiting for extraction": "3",
        "waiting for verification": "1",
        "of these in work": "1",
        "claims supported": "9",
        "claims contradicted": "2",
        "claims unsupported": "3",
    }


def test_the_table_of_a_finished_batch_has_its_time(batch, printed):
    finished = batch(
        status="cancelled", waiting=0, cancelled=4, finished_at="2026-03-01T20:00:20.5Z"
    )
    text = printed(batch_table(parse_batch_state(finished)))
    assert text.startswith("batch 12: cancelled")
    found = rows(text)
    assert found["cancelled"] == "4"
    assert found["time"] == "0:00:20"
    assert found["rate"] == "0.5 audits/s"
    assert not any(name.startswith("waiting") for name in found)


def test_names_of_others_cannot_reach_the_terminal(printed):
    flagged = [
        FlaggedAudit(id="77", line=3, custom_id="a\x1b[2J[red]", fedscore=0.98765),
        FlaggedAudit(id="8", line=None, custom_id=None, fedscore=0.5),
    ]
    text = printed(flagged_table(flagged))
    assert "\x1b" not in text
    assert "a\\x1b[2J[red]" in text
    assert "0.9877" in text


def test_a_document_of_something_else_is_refused(batch):
    document = batch()
    del document["waiting"]
    with pytest.raises(ServiceError, match="waiting"):
        parse_batch_state(document)
