"""Showing progress: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from cli.consoles import messages_console, tell
from cli.printable import printable

_SECONDS_BEFORE_BAR = 1.0  # what is done sooner needs no bar
_SECONDS_BETWEEN_LINES = 5.0
_SHARE_OF_TIME_BETWEEN_LINES = 0.05


class ProgressDisplay(Protocol):
    """Shows how far a command is, while it runs as a context."""

    def show(self, text: str | Text, fraction: float | None) -> None:
        """Replace what is shown; a fraction of None is not known."""

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
        """End, leaving nothing behind."""


def progress_display() -> ProgressDisplay:
    """Return the display that suits standard error."""
    console = messages_console()
    return ProgressBar(console) if console.is_terminal else ProgressLines()


class ProgressBar:
    """A bar that appears only when the work takes longer than a second, and then vanishes."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(_SECONDS_BEFORE_BAR, self._start)
        self._timer.daemon = True

    def show(self, text: str | Text, fraction: float | None) -> None:
        """Replace what is shown."""
        total = None if fraction is None else 1.0
        self._progress.update(
            self._task, description=str(text), total=total, completed=fraction or 0.0
        )

    def say(self, message: str) -> None:
        """Write a message above the bar."""
        self._progress.console.print(Text(f"halldetect: {printable(message)}"), soft_wrap=True)

    def _start(self) -> None:
        with self._lock:
            if not self._is_over:
                self._progress.start()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            self._progress.stop()


class ProgressLines:
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

    def show(self, text: str | Text, fraction: float | None) -> None:
        """Write a line if the last one is old enough."""
        now = self._clock()
        if now >= self._next:
            tell(f"{_percent(fraction)}{text}")
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


def _percent(fraction: float | None) -> str:
    """Return a share in words, 100 % only when it is whole."""
    return "" if fraction is None else f"{int(100 * fraction)}%: "
