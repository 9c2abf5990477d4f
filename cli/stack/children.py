"""One child of the supervisor: started, watched, started again when it dies, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cli.stack.errors import StackError
from cli.stack.server_process import log_tail

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_SOUND_AFTER_SECONDS = 60.0  # a child that ran for so long has earned a quick start again


class ChildState(StrEnum):
    """What a child is doing."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ChildPlan:
    """How to run one child.

    Parameters
    ----------
    name : str
        What people know it by.
    launch : callable
        Starts the process.
    is_ready : callable
        Given the process id, tells whether the child does its work.
    log : Path
        Where the process writes.
    before_launch : callable
        What to do before each start; returns what to say of it, if anything.
    stop_signal : signal.Signals
        What asks it to end.
    grace_seconds : float
        How long it may take to end before it is killed.
    """

    name: str
    launch: Callable[[], subprocess.Popen[bytes]]
    is_ready: Callable[[int], bool]
    log: Path
    before_launch: Callable[[], str | None] = lambda: None
    stop_signal: signal.Signals = signal.SIGTERM
    grace_seconds: float = 10.0


class Child:
    """A process that is to run until it is asked to stop.

    Parameters
    ----------
    plan : ChildPlan
        What to run.
    clock : callable
        Seconds that only go forward.
    """

    def __init__(self, plan: ChildPlan, clock: Callable[[], float] = time.monotonic) -> None:
        self.plan = plan
        self.state = ChildState.WAITING
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._log_start = 0
        self._pause = _FIRST_PAUSE_SECONDS
        self._last_reason: str | None = None
        self._due_at = 0.0
        self._kill_at = 0.0

    @property
    def name(self) -> str:
        """What people know it by."""
        return self.plan.name

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> str | None:
        """Start the process; return what to say, if anything."""
        self._started_at = self._clock()
        self._log_start = _size(self.plan.log)
        message = self.plan.before_launch()
        try:
            self._process = self.plan.launch()
        except StackError as error:
            return self._start_later(str(error))
        self.state = ChildState.STARTING
        return message

    def check(self) -> str | None:
        """Look at the process, and do what its state asks for; return what to say, if anything."""
        if self.state is ChildState.RESTARTING:
            return self.start() if self._clock() >= self._due_at else None
        if self._process is None:
            return None
        code = self._process.poll()
        if self.state is ChildState.STOPPING:
            return self._check_stopping(code)
        if code is not None:
            return self._died(code)
        if self.state is ChildState.STARTING and self.plan.is_ready(self._process.pid):
            self.state = ChildState.RUNNING
            return f"{self.name} is ready after {self._clock() - self._started_at:.1f} s"
        return None

    def ask_to_stop(self) -> None:
        """Send the polite signal; `check` kills the child when its time is over."""
        if self._process is None:
            self.state = ChildState.STOPPED
            return
        self.state = ChildState.STOPPING
        self._kill_at = self._clock() + self.plan.grace_seconds
        self._process.send_signal(self.plan.stop_signal)

    def hurry(self) -> None:
        """Let no more time pass before a child that is stopping is killed."""
        self._kill_at = self._clock()

    def _check_stopping(self, code: int | None) -> str | None:
        if code is None:
            if self._clock() < self._kill_at:
                return None
            self._kill()
            return f"{self.name} did not stop in time and was killed"
        self._process = None
        self.state = ChildState.STOPPED
        return None

    def _died(self, code: int) -> str:
        was_ready = self.state is ChildState.RUNNING
        how = (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        if was_ready and self._clock() - self._started_at >= _SOUND_AFTER_SECONDS:
            self._pause = _FIRST_PAUSE_SECONDS
        self._process = None
        when = "unexpectedly" if was_ready else "while starting"
        return self._start_later(
            f"{self.name} {how} {when}{log_tail(self.plan.log, self._log_start)}"
        )

    def _start_later(self, reason: str) -> str:
        self.state = ChildState.RESTARTING
        self._due_at = self._clock() + self._pause
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        again = f"{self.name} is started again in {pause:.0f} s"
        if reason == self._last_reason:
            return f"{self.name} ended the same way once more; {again}"
        self._last_reason = reason
        return f"{reason}\n    {again}"

    def _kill(self) -> None:
        """Kill the child's whole session: what it started must not outlive it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
