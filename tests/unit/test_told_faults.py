from __future__ import annotations

import io
import json
import logging

import psycopg
import pytest
from sqlalchemy.exc import IntegrityError
from structlog.contextvars import bound_contextvars

from halldetect import logs
from halldetect.errors import InputError
from halldetect.told_faults import told, told_with_places

TEXT = "The patient is 43."


def raised(error, cause=None):
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_what_is_raised_on_purpose_says_what_it_says():
    assert told(InputError("line 3: is empty")) == "line 3: is empty"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyError(TEXT), "KeyError"),
        (OSError(28, TEXT), "OSError (errno 28)"),
        (psycopg.errors.CheckViolation(TEXT), "psycopg.errors.CheckViolation (SQLSTATE 23514)"),
        (
            IntegrityError("SELECT", {}, psycopg.errors.UniqueViolation(TEXT)),
            "sqlalchemy.exc.IntegrityError (SQLSTATE 23505)",
        ),
    ],
)
def test_others_say_what_kind_they_are(error, says):
    assert told(error) == says


def test_places_and_what_was_behind_are_told_without_messages():
    error = raised(ValueError(TEXT), raised(KeyError(TEXT)))
    lines = told_with_places(error).splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [
        "KeyError",
        "which led to:",
        "ValueError",
    ]
    assert any("test_told_faults.py" in line and line.endswith("in raised") for line in lines)
    assert "patient" not in "".join(lines)


def test_groups_and_circles_are_told():
    group = ExceptionGroup("both", [ValueError(TEXT), KeyError(TEXT)])
    assert told_with_places(group).splitlines()[1::2] == ["ValueError", "KeyError"]
    first, second = ValueError(TEXT), KeyError(TEXT)
    first.__cause__, second.__cause__ = second, first
    assert told_with_places(first).splitlines() == ["KeyError", "which led to:", "ValueError"]


@pytest.fixture
def logged(monkeypatch):
    """Return a function to the entries that were written since."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.configure_logging()
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], level = before
    root.setLevel(level)


def test_no_logger_writes_the_message_of_an_error(logged):
    try:
        raise KeyError(TEXT)
    except KeyError as error:
        with bound_contextvars(audit_id=7):
            logs.get_logger("ours").error("it failed", exc_info=error)
        logs.get_logger("ours").exception("it failed")
        logging.getLogger("another").exception("it failed")
    entries = logged()
    assert len(entries) == 3
    for entry in entries:
        assert entry["exception"].splitlines()[-1] == "KeyError"
        assert "patient" not in json.dumps(entry)
        assert "exc_info" not in entry
    assert entries[0]["audit_id"] == 7
