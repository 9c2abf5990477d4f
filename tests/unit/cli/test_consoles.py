import pytest
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from cli.consoles import messages_console, results_console
from cli.main import app

LINE = "webhook 1: https://hooks.example.org/" + "a/b-c " * 60 + "`halldetect status 7 --wait`"


@pytest.mark.parametrize("columns", [None, "40"])
@pytest.mark.parametrize("kind", [str, Text])
def test_a_line_stays_a_line_without_a_terminal(capsys, monkeypatch, kind, columns):
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    results_console().print(kind(LINE))
    messages_console().print(kind(LINE))
    written = capsys.readouterr()
    assert (written.out, written.err) == (f"{LINE}\n", f"{LINE}\n")


def test_a_table_keeps_to_a_width_that_can_be_read(capsys):
    table = Table()
    table.add_row(LINE)
    results_console().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert {len(line) for line in lines} == {110}


@pytest.mark.parametrize(
    "arguments",
    [
        ("x" * 300,),
        ("--" + "x" * 300,),
        ("status", "--" + "x" * 300),
        ("webhooks", "list", "x" * 300),
    ],
)
def test_a_usage_error_is_told_in_one_line(arguments):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "x" * 300 in done.stderr
