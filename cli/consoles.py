"""The two places that output goes to: results to standard output, all else to standard error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table

from cli.plain_tables import holds_text_alone, longest_word, plain_table, widest_line

_FRAME_AROUND_A_CELL = 3
_LONGEST_WHOLE_WORD = 16
_WIDEST = 10_000


class _Console(Console):
    """A console that breaks no lines of a pipe, and lets the caller decide what a closed one means.

    Rich would end the process with 1, which is the exit code of a flagged response. Where no
    terminal shows them, lines stay whole and tables are plain, however long and whatever COLUMNS
    says: a program that reads them takes a line for a sentence or a row, and a person copies
    commands and addresses from them.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print, on a terminal within its width."""
        if soft_wrap is None:
            soft_wrap = not self.is_terminal
        super().print(*objects, soft_wrap=soft_wrap, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render something, or a part of it."""
        if isinstance(renderable, Table) and holds_text_alone(renderable):
            if self.is_terminal and _fits(renderable, (options or self.options).max_width):
                for column in renderable.columns:
                    column.overflow = "fold"  # rich's own is to cut off what is too long
            else:
                renderable = plain_table(renderable)
        elif isinstance(renderable, Rule) and not self.is_terminal:
            renderable = renderable.title
        return super().render(renderable, options)


def _fits(table: Table, room: int) -> bool:
    """Return whether a table's columns have room for their words, all but the very long ones."""
    widths = (
        widest_line(column) if column.no_wrap else min(longest_word(column), _LONGEST_WHOLE_WORD)
        for column in table.columns
    )
    return sum(width + _FRAME_AROUND_A_CELL for width in widths) < room


class OutputError(OSError):
    """Standard output cannot be written, for example because the disk is full."""


class _Results(io.FileIO):
    """Standard output, whose faults are told from those of other files."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


class _Messages(io.FileIO):
    """Standard error: what it cannot take is lost, and the exit code stays what it is."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except OSError:
            return len(content)


def prepare_streams() -> None:
    """Make the standard streams usable: UTF-8 whatever the locale, and none of them closed."""
    _forget_impossible_width()
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # takes number 0
    sys.stdout = _stream(sys.stdout, _Results)
    sys.stderr = _stream(sys.stderr, _Messages)


def _forget_impossible_width() -> None:
    """Take COLUMNS away where it is no width: in none at all everything would vanish."""
    columns = os.environ.get("COLUMNS", "")
    if not (columns.isascii() and columns.isdigit() and 0 < int(columns[:9]) <= _WIDEST):
        os.environ.pop("COLUMNS", None)


def _stream(stream: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    """Return `stream` with its faults handled; one that is closed writes to nowhere."""
    number = os.open(os.devnull, os.O_WRONLY) if stream is None else stream.fileno()
    raw = kind(number, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=kind is _Messages or raw.isatty(),
    )


def results_console() -> Console:
    """Return the console for results."""
    return _console(stderr=False)


def messages_console() -> Console:
    """Return the console for progress and messages."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    return _Console(
        stderr=stderr,
        # Variables such as FORCE_COLOR would fill the log of a machine with frames and movement.
        force_terminal=stream.isatty(),
        highlight=False,
        markup=False,
        emoji=False,
    )


def tell(message: str) -> None:
    """Write one line to standard error, if that can be written."""
    from cli.printable import printable

    with suppress(OSError, ValueError):
        sys.stderr.write(f"halldetect: {printable(message)}\n")
        sys.stderr.flush()
