import io

import pytest
from rich.console import Console
from rich.text import Text

from cli.client.follow_display import FollowBar


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
