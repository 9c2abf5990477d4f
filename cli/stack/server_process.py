"""What both embedded servers have in common: a child that becomes ready, and is asked to end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from cli.printable import printable
from cli.stack.errors import StackError

_POLL_SECONDS = 0.02
_LOG_LINES = 8
_LOG_BYTES = 8192


def wait_until_ready(
    process: subprocess.Popen[bytes],
    name: str,
    is_ready: Callable[[int], bool],
    *,
    log: Path,
    seconds: float,
) -> None:
    """Wait for `is_ready`; a process that ends or stays silent is an error with its last lines.

    Raises
    ------
    StackError
        Naming the server, what happened, and the end of its log.
    """
    deadline = time.monotonic() + seconds
    while not is_ready(process.pid):
        code = process.poll()
        if code is not None:
            raise StackError(f"{name} ended with code {code} while starting{log_tail(log)}")
        if time.monotonic() > deadline:
            raise StackError(f"{name} accepts no connections after {seconds:.0f} s{log_tail(log)}")
        time.sleep(_POLL_SECONDS)


def end(process: subprocess.Popen[bytes], polite: signal.Signals, *, seconds: float) -> None:
    """Ask `process` to end with the signal `polite`, and kill it if it has not after `seconds`."""
    if process.poll() is not None:
        return
    process.send_signal(polite)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def log_tail(log: Path, start: int = 0) -> str:
    """Return the last lines of `log` after byte `start`, indented, to put after a message."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(start, size - _LOG_BYTES))
            lines = stream.read().decode(errors="replace").splitlines()[-_LOG_LINES:]
    except OSError:
        lines = []
    return "".join(f"\n    {printable(line)}" for line in lines) + f"\n    (log: {log})"
