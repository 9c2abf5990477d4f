"""What the user sees while the stack runs: one live screen, or plain lines where there is none."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cli.consoles import results_console
from cli.printable import printable
from cli.stack.answers import unreported
from cli.stack.observations import Observation
from cli.stack.run_file import RunningStack
from cli.stack.tables import addresses, numbers, stack_tables

_MESSAGES_SHOWN = 8
_SECONDS_BETWEEN_FRAMES = 1.0
_SECONDS_BETWEEN_LINES = 5.0


class Screen(Protocol):
    """Shows messages, and how the stack is doing."""

    def say(self, message: str) -> None:
        """Show a message, of one line or several."""

    def announce(self, message: str, stack: RunningStack) -> None:
        """Show a message that makes people want the addresses."""

    def show(self, stack: RunningStack, observation: Observation) -> None:
        """Show how things are now; called often."""


@contextmanager
def screen() -> Iterator[Screen]:
    """Yield the screen that suits standard output."""
    console = results_console()
    if not console.is_terminal:
        yield PlainLines(console)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield LiveScreen(live)


class LiveScreen:
    """Tables that are drawn anew in place, with the last messages below.

    Parameters
    ----------
    live : Live
        What draws.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._messages: deque[Text] = deque(maxlen=_MESSAGES_SHOWN)
        self._tables: Group | None = None
        self._next = 0.0

    def say(self, message: str) -> None:
        """Show a message at once."""
        for line in _lines(message):
            self._messages.append(Text(line, style="dim"))
        self._draw()

    def announce(self, message: str, stack: RunningStack) -> None:
        """Show the message alone: the addresses are in the tables."""
        self.say(message)

    def show(self, stack: RunningStack, observation: Observation) -> None:
        """Draw the tables, if the last drawing is old enough."""
        if time.monotonic() >= self._next:
            silent = unreported(stack, observation)
            self._tables = Group(stack_tables(stack, observation, silent), Text())
            self._draw()
            self._next = time.monotonic() + _SECONDS_BETWEEN_FRAMES

    def _draw(self) -> None:
        above = [self._tables] if self._tables is not None else []
        self._live.update(Group(*above, *self._messages), refresh=True)


class PlainLines:
    """A line for each message, and one now and then when the numbers have changed.

    Parameters
    ----------
    console : Console
        Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_numbers: str | None = None
        self._next = 0.0

    def say(self, message: str) -> None:
        """Write a message at once."""
        for line in _lines(message):
            self._console.print(Text(line), soft_wrap=True)
        self._console.file.flush()

    def announce(self, message: str, stack: RunningStack) -> None:
        """Write the message and the addresses."""
        self.say("\n".join([message, *(f"    {name}: {at}" for name, at in addresses(stack))]))

    def show(self, stack: RunningStack, observation: Observation) -> None:
        """Write the numbers if they are new, and the last line is old enough."""
        if not observation.is_known or time.monotonic() < self._next:
            return
        text = numbers(observation)
        is_news = text != self._last_numbers and not (
            self._last_numbers is None and observation.is_idle
        )
        if is_news:
            self.say(text)
            self._last_numbers = text
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES


def _lines(message: str) -> list[str]:
    """Return the lines of `message`, each fit to be shown."""
    return [printable(line) for line in message.split("\n")]
