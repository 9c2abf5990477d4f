"""The two places that output goes to: results to standard output, all else to standard error."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

# Rich takes 80 columns where there is no terminal, too few for evidence beside claims.
_WIDTH_WITHOUT_TERMINAL = 110


class _Console(Console):
    """A console that breaks no lines of a pipe, and lets the caller decide what a closed one means.

    Rich would end the process with 1, which is the exit code of a flagged response.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print; lines of text stay whole where no terminal shows them, however long.

        A program that reads them takes a line for a sentence, and a person copies commands and
        addresses from them. Tables keep to the width.
        """
        if soft_wrap is None and not self.is_terminal:
            soft_wrap = all(isinstance(part, (str, Text)) for part in objects)
        super().print(*objects, soft_wrap=soft_wrap, **options)


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
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # takes number 0
    sys.stdout = _stream(sys.stdout, _Results)
    sys.stderr = _stream(sys.stderr, _Messages)


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
    width = None
    if not stream.isatty() and "COLUMNS" not in os.environ:
        width = _WIDTH_WITHOUT_TERMINAL
    return _Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def tell(message: str) -> None:
    """Write one line to standard error, if that can be written."""
    from cli.printable import printable

    with suppress(OSError, ValueError):
        sys.stderr.write(f"halldetect: {printable(message)}\n")
        sys.stderr.flush()
