import json

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from cli.doctor_command import examine
from cli.main import app
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
