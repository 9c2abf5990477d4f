import json
import os
from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from cli.doctor_command import examine
from cli.main import app
from cli.stack.children import ChildState
from cli.stack.home import Home
from cli.stack.lock import exclusive_lock
from cli.stack.run_file import RunningChild, RunningStack, write_run_file
from db.migrate import downgrade
from db.partitions import ensure_current_partitions
from halldetect.errors import UnavailableError
from halldetect.settings import load_settings

RESPONSE = "The mill opened in 1900. A dragon lives in it."


@pytest.fixture
def settings(database, redis_url, tmp_path):
    return load_settings(database_url=database, redis_url=redis_url, home=tmp_path)


@pytest.fixture
def audits(store, sessions):
    store(RESPONSE, "Thanks!")
    with sessions.begin() as session:
        ensure_current_partitions(session)


@pytest.fixture
def report(settings, capsys):
    def run(settings=settings):
        code = examine(settings, as_json=True)
        return code, json.loads(capsys.readouterr().out)

    return run


def test_all_is_well(audits, settings, report, capsys):
    assert report() == (0, {"is_clean": True, "failed_audits": 0, "findings": []})
    assert examine(settings, as_json=False) == 0
    assert capsys.readouterr().out == "all is well\n"


def test_what_is_wrong_is_said_with_how_to_mend_it(audits, settings, sessions, report, capsys):
    with sessions.begin() as session:
        session.execute(text("UPDATE halldetect.batches SET total = 3"))
    code, found = report()
    [finding] = found["findings"]
    assert (code, found["is_clean"]) == (1, False)
    assert (finding["check"], finding["count"], finding["examples"]) == ("batch_totals", 1, ["1"])
    assert examine(settings, as_json=False) == 1
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("batch_totals (1): batches whose total")
    assert second.strip() == "1"
    assert third.strip().startswith("to mend it: ")


def test_failed_audits_are_told_and_do_not_count(audits, settings, sessions, report, capsys):
    with sessions.begin() as session:
        session.execute(
            text(
                "INSERT INTO halldetect.audits (document_id, policy_id, response, status, error,"
                " finished_at) SELECT document_id, policy_id, 'x', 'failed', 'odd', now() FROM"
                " halldetect.audits LIMIT 1"
            )
        )
    assert report() == (0, {"is_clean": True, "failed_audits": 1, "findings": []})
    assert examine(settings, as_json=False) == 0
    assert "1 audit has failed: `halldetect failed`" in capsys.readouterr().out


def test_a_broker_that_is_away_is_a_finding(audits, report, database, tmp_path):
    away = load_settings(database_url=database, redis_url="redis://127.0.0.1:1/0", home=tmp_path)
    code, found = report(away)
    assert code == 1
    assert [finding["check"] for finding in found["findings"]] == ["broker"]
    code, found = report(load_settings(database_url=database, home=tmp_path))
    assert "set REDIS_URL" in found["findings"][0]["problem"]


@pytest.fixture
def run_stack(settings, database, redis_url, tmp_path):
    """Say that a stack runs in the home folder: all its parts are this very process."""
    home = Home(tmp_path)
    home.run_file.parent.mkdir(parents=True, exist_ok=True)

    def run(*children):
        stack = RunningStack(
            pid=os.getpid(),
            started_at=datetime.now(UTC),
            home=tmp_path,
            api_url="http://127.0.0.1:1",
            flower_url="http://127.0.0.1:1",
            database_url=database,
            redis_url=redis_url,
            children=tuple(
                RunningChild(name=name, state=state, pid=os.getpid(), created_at=1.0, log=tmp_path)
                for name, state in children
            ),
        )
        write_run_file(stack)

    with exclusive_lock(home.lock_file):
        yield run


def test_parts_of_the_running_stack_that_do_nothing_are_a_finding(
    audits, run_stack, report, settings, tmp_path
):
    run_stack(("postgres", ChildState.RUNNING), ("beat", ChildState.RUNNING))
    assert report()[0] == 0
    run_stack(
        ("api", ChildState.RUNNING),
        ("maintenance", ChildState.RUNNING),
        ("beat", ChildState.RESTARTING),
        ("flower", ChildState.STARTING),
    )
    code, found = report()
    [finding] = found["findings"]
    assert (code, finding["check"], finding["count"]) == (1, "processes", 3)
    assert finding["examples"] == [
        "api does not answer",
        "maintenance does not report",
        "beat ends again and again",
    ]
    elsewhere = load_settings(
        database_url=f"{settings.database_url.get_secret_value()}?connect_timeout=9",
        redis_url=settings.redis_url.get_secret_value(),
        home=tmp_path,
    )
    assert report(elsewhere)[0] == 0


def test_of_an_older_schema_only_that_is_said(database, report):
    downgrade(database, "0002")
    code, found = report()
    assert code == 1
    assert [finding["check"] for finding in found["findings"]] == ["schema"]
    assert "python -m db.migrate upgrade" in found["findings"][0]["mend"]
    assert found["failed_audits"] is None


def test_without_a_database_it_says_so(redis_url, tmp_path):
    away = load_settings(
        database_url="postgresql://nobody@127.0.0.1:1/none", redis_url=redis_url, home=tmp_path
    )
    with pytest.raises(UnavailableError):
        examine(away, as_json=True)


def test_it_is_a_command(audits, database, redis_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("REDIS_URL", redis_url)
    done = CliRunner().invoke(app, ["doctor"])
    assert (done.exit_code, done.stdout) == (0, "all is well\n")
