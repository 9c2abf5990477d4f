"""The two places that output goes to: results to standard output, all else to standard error."""

from __future__ import annotations

import io
import os
import sys

from rich.console import Console

# Rich takes 80 columns where there is no terminal, too few for evidence beside claims.
_WIDTH_WITHOUT_TERMINAL = 110


class _Console(Console):
    """A console that lets the caller decide what a closed pipe means.

    Rich would end the process with 1, which is the exit code of a flagged response.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def speak_utf8() -> None:
    """Make both streams UTF-8, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


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
    """Write one line to standard error."""
    from cli.printable import printable

    sys.stderr.write(f"halldetect: {printable(message)}\n")
    sys.stderr.flush()
