import pytest
from typer.testing import CliRunner

from cli.export_formats import ExportFormat
from cli.main import app
from db.exported import Exported


@pytest.fixture
def call(monkeypatch):
    """Runs a command line and returns the exit code and what the command was given."""

    def run(function, *arguments, code=0):
        given = []

        def command(*positional, **named):
            given.append((positional[0], named))
            return code

        monkeypatch.setattr(function, command)
        done = CliRunner().invoke(app, arguments)
        return done.exit_code, *given

    return run


@pytest.mark.parametrize(
    ("function", "arguments", "given"),
    [
        ("cli.review_command.review_batch", ["review", "7"], (7, {"reviewer": None})),
        (
            "cli.review_command.review_batch",
            ["review", "7", "--reviewer", "ada"],
            (7, {"reviewer": "ada"}),
        ),
        (
            "cli.verify_command.verify_audit",
            ["verify", "9"],
            (9, {"tolerance": 1e-5, "as_json": False}),
        ),
        (
            "cli.export_command.export_batch",
            ["export", "--batch", "7", "--format", "csv", "--out", "-"],
            (7, {"file_format": ExportFormat.CSV, "out": "-", "what": Exported.CLAIMS}),
        ),
        (
            "cli.prune_command.prune_database",
            ["prune", "--before", "2026-03-01", "--yes"],
            ("2026-03-01", {"agreed": True, "as_json": False}),
        ),
    ],
)
def test_a_command_line_reaches_its_command(call, function, arguments, given):
    assert call(function, *arguments) == (0, given)


def test_the_answer_of_a_command_is_the_exit_code(call):
    code, _ = call("cli.verify_command.verify_audit", "verify", "9", code=3)
    assert code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["review", "0"],
        ["verify", "x"],
        ["verify", "9", "--tolerance", "-1"],
        ["export", "--batch", "7", "--out", "-"],
        ["export", "--batch", "7", "--format", "xlsx", "--out", "-"],
        ["export", "--batch", str(2**63), "--format", "csv", "--out", "-"],
        ["prune"],
    ],
)
def test_what_makes_no_command_line_is_refused(arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2
