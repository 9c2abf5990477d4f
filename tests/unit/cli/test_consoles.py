import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from io import StringIO

import pytest
from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from cli import progress_display
from cli.client.follow_display import FollowBar
from cli.consoles import _Console, messages_console, results_console
from cli.main import app
from cli.progress_display import ProgressBar

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


@pytest.mark.parametrize("variables", [{}, {"COLUMNS": "40"}, {"FORCE_COLOR": "1"}])
def test_a_row_stays_a_line_without_a_terminal(capsys, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    table = Table(title="a title that is longer than the table")
    table.add_column("no", justify="right")
    table.add_column("line", no_wrap=True)
    table.add_row("7", LINE)
    results_console().print(Group(table, Rule(Text("a rule"))))
    assert capsys.readouterr().out.splitlines() == [
        "a title that is longer than the table",
        "no  line",
        f" 7  {LINE}",
        "a rule",
    ]


@pytest.mark.parametrize("no_wrap", [True, False])
def test_a_narrow_terminal_gets_every_character(no_wrap):
    word = "".join(chr(ord("a") + number % 26) for number in range(120))
    table = Table()
    for title in ("1", "2"):
        table.add_column(title, no_wrap=no_wrap)
    table.add_row(word, Text(word.upper()))
    console = _Console(file=StringIO(), force_terminal=True, width=40, color_system=None)
    console.print(table)
    shown = console.file.getvalue()
    assert ("┡" in shown) is not no_wrap
    assert "".join(filter(str.islower, shown)) == word
    assert "".join(filter(str.isupper, shown)) == word.upper()


@pytest.mark.parametrize(
    "columns", ["", "0", "000", "-5", "wide", "\xb2", "99999999999", "9" * 5000]
)
def test_a_width_that_is_none_is_passed_over_on_a_terminal(columns):
    output, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "failed", "--help"],
        env=os.environ | {"COLUMNS": columns, "TERM": "xterm"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        shown = b""
        with suppress(OSError), open(output, "rb", buffering=0) as reader:
            while piece := reader.read(65536):  # an error tells the end of a terminal
                shown += piece
    assert process.returncode == 0
    assert b"Show this message and exit." in shown


@pytest.mark.parametrize("display", [ProgressBar, FollowBar])
@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_bar_is_one_on_a_terminal_of_any_width(monkeypatch, display, width):
    monkeypatch.setattr(progress_display, "_SECONDS_BEFORE_BAR", 0.0)
    console = _Console(file=StringIO(), force_terminal=True, width=width, color_system=None)
    with display(console) as bar:
        bar.show("uploading", 0.5)
        deadline = time.monotonic() + 60
        while "uploading" not in console.file.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "uploading" in console.file.getvalue()
    assert "━━━" in console.file.getvalue()
    assert "<" not in console.file.getvalue()


@pytest.mark.parametrize("command", [[], ["audit"], ["keys", "rotate"], ["webhooks"]], ids=" ".join)
def test_help_in_a_pipe_has_no_frames_and_whole_lines(command):
    done = subprocess.run(
        [sys.executable, "-m", "cli", *command, "--help"],
        env=os.environ | {"COLUMNS": "40", "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert not set("│╭─\x1b…") & set(done.stdout)
    assert "..." not in done.stdout.replace("[ARGS]...", "")
    assert "\n  --help" in done.stdout
    assert max(map(len, done.stdout.splitlines())) > 80


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
