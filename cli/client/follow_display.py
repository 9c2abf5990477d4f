"""Showing a batch that goes on: on a terminal a bar with the running tally under it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.consoles import messages_console
from cli.printable import printable
from cli.progress_display import ProgressDisplay, ProgressLines

_BAR_WIDTH = 40
_REFRESHES_PER_SECOND = 4


def follow_display() -> ProgressDisplay:
    """Return the display that suits standard error."""
    console = messages_console()
    return FollowBar(console) if console.is_terminal else ProgressLines()


class FollowBar:
    """A bar with the tally under it, which vanish at the end."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND)

    def show(self, text: str | Text, fraction: float | None) -> None:
        """Replace what is shown."""
        bar = Table.grid(padding=(0, 1))
        share = "" if fraction is None else f"{int(100 * fraction)}%"
        total = None if fraction is None else 1.0
        bar.add_row(ProgressBar(total=total, completed=fraction or 0.0, width=_BAR_WIDTH), share)
        self._live.update(Group(bar, text))

    def say(self, message: str) -> None:
        """Write a message above the bar."""
        self._live.console.print(Text(f"halldetect: {printable(message)}"), soft_wrap=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()
