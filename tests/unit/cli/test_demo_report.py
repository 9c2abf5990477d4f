import io
import sys

import pytest
from rich.console import Console

from cli.client.batch_state import parse_batch_state
from cli.demo_pairs import findings, load_pairs
from cli.demo_report import print_demo, where_to_look
from cli.stack.run_file import RunningStack
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome, TextSpan

PAIRS = load_pairs()


@pytest.fixture
def printed():
    def render(function, *arguments, **options):
        stream = io.StringIO()
        function(Console(file=stream, width=110), *arguments, **options)
        return stream.getvalue()

    return render


@pytest.fixture
def found(make_result, make_claim):
    """An audit of each pair that says what it was written for, but for the last planted one."""

    def result(pair, is_missed):
        if pair.expected == Outcome.NO_CHECKABLE_CLAIMS:
            return make_result([], label=None, fedscore=None, outcome=Outcome.NO_CHECKABLE_CLAIMS)
        flagged = pair.planted is not None and not is_missed
        claim = make_claim(
            verdict=Verdict.CONTRADICTED if flagged else Verdict.SUPPORTED,
            span=TextSpan(start=0, end=len(pair.response)),
        )
        return make_result([claim], label=Label.HALLUCINATED if flagged else Label.FAITHFUL)

    missed = [pair for pair in PAIRS if pair.planted is not None][-1]
    return findings(PAIRS, [result(pair, pair is missed) for pair in PAIRS])


@pytest.fixture
def state():
    numbers = dict.fromkeys(
        ("queued", "extracted", "running", "failed", "cancelled", "waiting", "hallucinated",
         "faithful", "no_checkable_claims", "supported", "contradicted", "unsupported"), 0,
    )  # fmt: skip
    about = {"id": "7", "status": "completed", "created_at": "2026-03-01T20:00:00Z"}
    return parse_batch_state({**about, **numbers, "total": len(PAIRS), "completed": len(PAIRS)})


@pytest.fixture
def stack(tmp_path):
    return RunningStack(
        pid=1,
        started_at="2026-03-01T20:00:00Z",
        home=tmp_path / "my demo",
        api_url="http://127.0.0.1:8000",
        flower_url="http://halldetect:secret@127.0.0.1:5555",
        database_url="postgresql://halldetect:secret@127.0.0.1:15432/halldetect",
        redis_url="redis://:secret@127.0.0.1:16379/0",
    )


def test_it_counts_what_was_found_as_planted_and_owns_up_to_the_rest(printed, state, found):
    text = printed(print_demo, state, found)
    assert f"{len(PAIRS) - 1} of {len(PAIRS)} as planted" in text
    assert text.count(" NO ") == 1
    assert "batch 7: completed" in text
    assert "ferry: one trail in full" in text
    assert "changed number: An adult return ticket" in text
    assert "no checkable claims" in text


def test_while_the_service_goes_on_its_addresses_can_be_used_as_they_are(printed, stack):
    text = printed(where_to_look, stack, "7", keeps=True)
    assert "http://127.0.0.1:8000/docs" in text
    assert stack.flower_url in text
    assert f"psql {stack.database_url} -c " in text
    assert f"export HALLDETECT_HOME='{stack.home}'" in text
    assert "halldetect results 7 --out results.jsonl" in text


def test_once_it_stops_it_says_how_to_have_it_again(printed, stack, monkeypatch):
    monkeypatch.setattr(sys, "argv", [".venv/bin/halldetect", "demo"])
    text = printed(where_to_look, stack, "7", keeps=False)
    assert f"HALLDETECT_HOME='{stack.home}' .venv/bin/halldetect up\n" in text
    assert "secret" not in text
