import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from cli.prune_command import prune_database
from halldetect.errors import InputError


def today():
    return datetime.now(UTC).date()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def old(store, sessions):
    """Three audits of a batch that finished ten days ago."""
    store("The mill opened in 1900. A dragon lives in it.", "Thanks!", "It closed.")
    with sessions.begin() as session:
        session.execute(
            text("UPDATE halldetect.audits SET finished_at = finished_at - interval '10 days'")
        )


@pytest.fixture
def audits(sessions):
    def count():
        with sessions() as session:
            return session.scalar(text("SELECT count(*) FROM halldetect.audits"))

    return count


@pytest.fixture
def prune(settings, monkeypatch):
    def run(before=None, agreed=False, as_json=False, answer=None):
        stdin = io.StringIO() if answer is None else Terminal(answer)
        monkeypatch.setattr("sys.stdin", stdin)
        day = str(today() if before is None else before)
        return prune_database(day, settings, agreed=agreed, as_json=as_json)

    return run


def test_it_says_what_goes_and_deletes_it_when_told_to(old, prune, audits, capsys):
    assert prune(answer="y\n") == 0
    output = capsys.readouterr().out
    rows = dict(
        reversed(line.split(maxsplit=1)) for line in output.splitlines() if line[:2] == "  "
    )
    assert rows["audits"] == "3"
    assert rows["batches of these"] == rows["documents that no other audit needs"] == "1"
    assert rows["claims"] == rows["rows of probabilities"] == "3"
    assert "deleted: audits 3, documents 1, months of probabilities 0" in output
    assert audits() == 0


@pytest.mark.parametrize("answer", ["n\n", "\n", "yesterday\n", ""])
def test_any_other_answer_deletes_nothing(old, prune, audits, capsys, answer):
    assert prune(answer=answer) == 0
    assert audits() == 3
    captured = capsys.readouterr()
    assert "nothing was deleted" in captured.err
    assert "for good" in captured.out


def test_without_a_terminal_it_wants_to_be_told(old, prune, audits, capsys):
    with pytest.raises(InputError, match="give --yes"):
        prune()
    assert audits() == 3
    assert "3 audits" in capsys.readouterr().out
    assert prune(agreed=True) == 0
    assert audits() == 0


def test_json_has_the_plan_and_what_was_done(old, prune, audits, capsys):
    day = today()
    assert prune(day, agreed=True, as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["plan"]["before"] == str(day)
    assert document["plan"]["audits"] == document["pruned"]["audits"] == 3
    assert audits() == 0
    assert prune(as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["plan"]["audits"] == 0
    assert document["pruned"] is None


def test_json_without_a_terminal_is_the_plan_alone(old, prune, audits, capsys):
    with pytest.raises(InputError, match="give --yes"):
        prune(as_json=True)
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["plan"]["audits"] == 3
    assert document["pruned"] is None
    assert captured.err == ""
    assert audits() == 3


def test_json_at_a_terminal_shows_what_is_asked_for(old, prune, capsys):
    assert prune(as_json=True, answer="n\n") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["pruned"] is None
    assert "3 audits" in captured.err


def test_with_nothing_to_delete_nobody_is_asked(store, prune, audits, capsys):
    store("The mill opened.")
    assert prune() == 0
    assert "nothing that finished before" in capsys.readouterr().out
    assert audits() == 1


def test_a_batch_that_stays_is_told(store, sessions, prune, capsys):
    store("The mill opened.", "It closed.")
    with sessions.begin() as session:
        session.execute(
            text(
                "UPDATE halldetect.audits SET finished_at = finished_at - interval '10 days'"
                " WHERE line = 1"
            )
        )
    prune()
    assert "the rest of their batch is not: 1" in capsys.readouterr().out


def test_a_partition_in_use_is_told_by_the_exit_code(old, engine, prune, monkeypatch, capsys):
    monkeypatch.setattr("db.retention._DROP_SECONDS", 0.05)
    with engine.begin() as connection:
        connection.execute(
            text(
                "CREATE TABLE halldetect.probabilities_2020_01 PARTITION OF"
                " halldetect.probabilities FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')"
            )
        )
    with engine.connect() as reader:
        reader.execute(text("SELECT count(*) FROM halldetect.probabilities"))
        assert prune(agreed=True) == 2
    assert "still in use and not dropped: probabilities_2020_01" in capsys.readouterr().err
    assert prune(agreed=True) == 0


def test_an_interruption_says_that_the_same_command_goes_on(old, prune, monkeypatch, audits):
    monkeypatch.setattr("db.retention._CHUNK", 2)
    monkeypatch.setattr("cli.progress_display.ProgressLines.show", _interrupt)
    with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
        prune(agreed=True)
    assert audits() == 1


def _interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "before", ["", "March", "2026-13-01", "01.03.2026", str(today() + timedelta(days=30))]
)
def test_what_is_no_day_in_the_past_is_refused(prune, before):
    with pytest.raises(InputError, match="--before"):
        prune(before, agreed=True)
