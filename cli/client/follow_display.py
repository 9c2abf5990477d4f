"""Showing a batch that goes on: a bar and a running tally, or a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.consoles import messages_console, tell
from cli.printable import printable

_BAR_WIDTH = 40
_REFRESHES_PER_SECOND = 4
_SECONDS_BETWEEN_LINES = 5.0
_SHARE_OF_TIME_BETWEEN_LINES = 0.05


class FollowDisplay(Protocol):
    """Shows how far a batch is, while it runs as a context."""

    def show(self, line: Text, fraction: float) -> None:
        """Replace what is shown."""

    def say(self, message: str) -> None:
        """Write a message that stays."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""


def follow_display() -> FollowDisplay:
    """Return the display that suits standard error."""
    console = messages_console()
    return FollowBar(console) if console.is_terminal else FollowLines()


class FollowBar:
    """A bar with the tally under it, which vanish at the end."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND)

    def show(self, line: Text, fraction: float) -> None:
        """Replace what is shown."""
        self._live.update(Group(_bar(fraction), line))

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


class FollowLines:
    """A line now and then, for logs: ever more seldom, so that a night's work fits a page.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._next = self._begun + _SECONDS_BETWEEN_LINES

    def show(self, line: Text, fraction: float) -> None:
        """Write a line if the last one is old enough."""
        now = self._clock()
        if now >= self._next:
            tell(f"{_percent(fraction)}: {line.plain}")
            pause = _SHARE_OF_TIME_BETWEEN_LINES * (now - self._begun)
            self._next = now + max(_SECONDS_BETWEEN_LINES, pause)

    def say(self, message: str) -> None:
        """Write a message at once."""
        tell(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def _bar(fraction: float) -> RenderableType:
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=1.0, completed=fraction, width=_BAR_WIDTH), _percent(fraction))
    return row


def _percent(fraction: float) -> str:
    """Return a share in words, 100 % only when it is whole."""
    return f"{int(100 * fraction)}%"
