"""A `halldetect up` of its own, whose parts can be found, struck and waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from cli.stack.children import ChildState
from cli.stack.home import Home
from cli.stack.ports import free_port
from cli.stack.run_file import RunningChild, RunningStack, read_running_stack

ROOT = Path(__file__).resolve().parent.parent
_SERVERS_OF_ONES_OWN = ("DATABASE_URL", "REDIS_URL")
_POLL_SECONDS = 0.1
_STOP_SECONDS = 180.0


class StackFailed(Exception):
    """The stack did not become what was waited for; the message has the end of what it printed."""


class OwnStack:
    """The whole service as one user starts it, in a home of its own; use it as a context.

    Parameters
    ----------
    home : Path
        Its home; what it prints goes to a file beside it.
    settings : mapping
        Further variables, such as ``HALLDETECT_LEASE_SECONDS``.
    """

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.output = home.with_suffix(".txt")
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(  # nosec B603  # our own command, without a shell
                [sys.executable, "-m", "cli", "up", "--extractor", "sentences"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment()
                | {
                    "HALLDETECT_API_PORT": str(free_port()),
                    "HALLDETECT_FLOWER_PORT": str(free_port()),
                    **self._settings,
                },
                start_new_session=True,  # a Ctrl-C for us is not one for it: we stop it ourselves
            )

    def stop(self) -> int:
        """Ask it to stop, wait, and return its exit code."""
        if self._process is None:
            raise StackFailed("the stack was not started")
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_STOP_SECONDS)

    def environment(self) -> dict[str, str]:
        """Return ours, without what would lead to another service, plus this home and this code."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("HALLDETECT_") and name not in _SERVERS_OF_ONES_OWN
        }
        paths = [str(ROOT), *filter(None, [inherited.get("PYTHONPATH")])]
        return inherited | {
            "HALLDETECT_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(paths),
        }

    @property
    def printed(self) -> str:
        """What `halldetect up` has said so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def running(self) -> RunningStack:
        """The stack as its supervisor wrote it down last.

        Raises
        ------
        StackFailed
            It has not written anything yet, or it ended.
        """
        stack = read_running_stack(self.home)
        if stack is None:
            raise StackFailed(f"no stack runs in {self.home}")
        return stack

    def part(self, name: str) -> RunningChild:
        """Return one process of the stack."""
        return next(child for child in self.running.children if child.name == name)

    def pid(self, name: str) -> int | None:
        """Return the process id of a part that is ready, or None."""
        child = self.part(name)
        return child.pid if child.state is ChildState.RUNNING else None

    def wait_until(self, holds: Callable[[RunningStack], bool], *, seconds: float) -> RunningStack:
        """Wait until `holds` is true of the stack, and return it.

        Raises
        ------
        StackFailed
            It ended, or the time did.
        """
        deadline = time.monotonic() + seconds
        while self._process is not None and self._process.poll() is None:
            stack = read_running_stack(self.home)
            if stack is not None and holds(stack):
                return stack
            if time.monotonic() > deadline:
                raise StackFailed(f"the stack is not as it should be after {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)
        raise StackFailed(f"the stack ended:\n{self.printed[-4000:]}")

    def wait_until_ready(self, *, seconds: float) -> RunningStack:
        """Wait until every part of it runs."""
        return self.wait_until(lambda stack: stack.is_ready, seconds=seconds)

    @property
    def valkey_data(self) -> list[Path]:
        """Where Valkey keeps what it would read at its next start."""
        folder = Home(self.home).valkey
        return [folder / "appendonlydir", folder / "dump.rdb"]
