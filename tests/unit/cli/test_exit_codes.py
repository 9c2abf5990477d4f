import pytest
from typer.testing import CliRunner

from cli.main import app
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
