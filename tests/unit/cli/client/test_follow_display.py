import io

import pytest
from rich.console import Console
from rich.text import Text

from cli.client.follow_display import FollowBar, FollowLines


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_lines_come_now_and_then_and_ever_more_seldom(capsys):
    clock = Clock()
    lines = FollowLines(clock)
    with lines:
        for second in range(10 * 3600):
            clock.now = float(second)
            lines.show(Text("going on"), 0.9999)
    written = capsys.readouterr().err.splitlines()
    assert set(written) == {"halldetect: 99%: going on"}
    assert 100 < len(written) < 200


def test_messages_come_at_once(capsys):
    with FollowLines() as lines:
        lines.show(Text("too early"), 0.5)
        lines.say("away\x1b[2J")
    assert capsys.readouterr().err == "halldetect: away\\x1b[2J\n"


@pytest.fixture
def stream():
    return io.StringIO()


def test_a_terminal_shows_bar_tally_and_messages(stream):
    with FollowBar(Console(file=stream, force_terminal=True, width=80)) as bar:
        bar.show(Text("6 of 10 audits [red]"), 0.6)
        bar.say("away\x1b[2J")
    shown = stream.getvalue()
    assert "60%" in shown
    assert "6 of 10 audits [red]" in shown
    assert "halldetect: away\\x1b[2J" in shown
