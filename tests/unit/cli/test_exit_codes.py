import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.client.errors import ServiceError, ServiceUnavailable
from cli.main import app
from cli.stack.errors import StackError
from halldetect.errors import InputError, LimitError, ModelError, PolicyError, VerificationError

ARGUMENTS = ["audit", "--source", "S.txt", "--response", "R.txt"]


@pytest.fixture
def run(monkeypatch):
    """Runs `halldetect audit` with an audit that returns or raises what it is given."""

    def run(outcome):
        def audit_texts(*_, **__):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr("cli.audit_command.audit_texts", audit_texts)
        return CliRunner().invoke(app, ARGUMENTS)

    return run


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (0, 0),
        (1, 1),
        (InputError("odd"), 2),
        (LimitError("odd"), 2),
        (PolicyError("odd"), 2),
        (ModelError("odd"), 3),
        (VerificationError("odd"), 3),
        (ServiceError("odd"), 4),
        (ServiceUnavailable("odd"), 4),
        (StackError("odd"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_outcome_has_its_exit_code(run, outcome, code):
    done = run(outcome)
    assert done.exit_code == code
    assert "Traceback" not in done.stderr


def test_an_error_is_one_line_without_control_codes(run):
    assert run(InputError("S\x1b[2J.txt:\nodd")).stderr == "halldetect: S\\x1b[2J.txt: odd\n"


def test_a_fault_of_the_program_is_told_from_a_verdict(run):
    done = run(ZeroDivisionError("oops"))
    assert done.exit_code == 70
    assert "oops" in done.stderr


def test_a_closed_pipe_ends_quietly(run, monkeypatch):
    monkeypatch.setattr("cli.main._silence_output", lambda: None)
    done = run(BrokenPipeError())
    assert done.exit_code == 141
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("audit --source none.txt --response none.txt 2>/dev/full", 2),
        ("audit --source none.txt --response none.txt 2>&-", 2),
        ("audit --source none.txt --response none.txt <&- >&- 2>&-", 2),
        ("audit --nope 2>/dev/full", 2),
        ("models --profile paper >/dev/null 2>&-", None),
        ("models >/dev/full", 2),
        ("--version >/dev/full", 2),
        ("--help >/dev/full", 2),
    ],
)
def test_streams_that_cannot_be_written_do_not_look_like_a_verdict(tmp_path, command, code):
    program = Path(sys.executable).with_name("halldetect")
    done = subprocess.run(
        ["sh", "-c", f"{program} {command}"], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode in ({0, 3} if code is None else {code}), done.stderr
    if ">/dev/full" in command and "2>" not in command:
        reason = b"No space left on device"
        assert done.stderr == b"halldetect: standard output cannot be written (%b)\n" % reason
