import io
import time

import pytest
from rich.console import Console

from cli import progress_display
from cli.progress_display import ProgressBar, ProgressLines


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture
def terminal(stream):
    return Console(file=stream, force_terminal=True, width=100)


def show_until(stream, text):
    while text not in stream.getvalue():
        time.sleep(0.01)


def test_short_work_shows_no_bar(terminal, stream, monkeypatch):
    monkeypatch.setattr(progress_display, "_SECONDS_BEFORE_BAR", 3600.0)
    with ProgressBar(terminal) as bar:
        bar.show("almost done", 0.9)
    assert "almost done" not in stream.getvalue()


def test_long_work_shows_what_it_does(terminal, stream, monkeypatch):
    monkeypatch.setattr(progress_display, "_SECONDS_BEFORE_BAR", 0.0)
    with ProgressBar(terminal) as bar:
        bar.show("verifying: 5 of 10 [pairs]", 0.5)
        show_until(stream, "verifying: 5 of 10 [pairs]")
        bar.say("line 3: [odd]\x1b")
        bar.show("still at it", None)
        show_until(stream, "still at it")
    assert "halldetect: line 3: [odd]\\x1b" in stream.getvalue()


def test_without_a_terminal_there_is_a_line_now_and_then(capsys, clock):
    with ProgressLines(clock) as lines:
        clock.now += 4.9
        lines.show("too early", 0.1)
        clock.now += 0.1
        lines.show("half way", 0.5)
        clock.now += 4.9
        lines.show("too soon again", 0.6)
        clock.now += 0.1
        lines.show("a stream", None)
        lines.say("a message")
    assert capsys.readouterr().err == (
        "halldetect: 50%: half way\nhalldetect: a stream\nhalldetect: a message\n"
    )


def test_lines_come_now_and_then_and_ever_more_seldom(capsys, clock):
    lines, began = ProgressLines(clock), clock.now
    with lines:
        for second in range(10 * 3600):
            clock.now = began + second
            lines.show("going on", 0.9999)
    written = capsys.readouterr().err.splitlines()
    assert set(written) == {"halldetect: 99%: going on"}
    assert 100 < len(written) < 200


def test_messages_come_at_once(capsys, clock):
    with ProgressLines(clock) as lines:
        lines.show("too early", 0.5)
        lines.say("away\x1b[2J")
    assert capsys.readouterr().err == "halldetect: away\\x1b[2J\n"
