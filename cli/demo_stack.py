"""The demo's own service: the embedded stack in a folder that nothing else uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.progress_display import ProgressDisplay, progress_display
from cli.stack.children import ChildState
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.observations import observe
from cli.stack.run_file import RunningChild, RunningStack, read_running_stack
from cli.stack.server_process import end, log_tail
from cli.stack.spawning import spawn
from db.models import WorkerState
from halldetect.errors import ModelError
from halldetect.settings import ExtractorBackend, Settings
from queues.names import Queue

_COMMAND = (sys.executable, "-P", "-m", "cli", "up")
# The demo's audits do not go into servers or services that serve something else.
_NOT_INHERITED = (
    "DATABASE_URL",
    "REDIS_URL",
    "HALLDETECT_DATABASE_URL",
    "HALLDETECT_REDIS_URL",
    "HALLDETECT_API_URL",
    # It listens on loopback and asks nobody for a key.
    "HALLDETECT_API_HOST",
    "HALLDETECT_METRICS_HOST",
    "HALLDETECT_API_KEY",
    "HALLDETECT_API_KEYS_REQUIRED",
)
_START_SECONDS = 180.0
_STOP_SECONDS = 120.0
_SECONDS_BETWEEN_LOOKS = 0.5


def demo_home(settings: Settings) -> Path:
    """Return the demo's home folder, beside the user's own: ``halldetect-demo`` by default."""
    home = settings.home.expanduser().absolute()
    return home.with_name(f"{home.name}-demo")


class DemoStack:
    """A stack for the demo, and whether it is ours to stop.

    Parameters
    ----------
    running : RunningStack
        Where everything is.
    process : Popen or None
        Its supervisor; None if another demo started it.
    """

    def __init__(self, running: RunningStack, process: subprocess.Popen[bytes] | None) -> None:
        self.running = running
        self._process = process

    @property
    def is_ours(self) -> bool:
        """Whether it ends with us."""
        return self._process is not None

    def wait(self) -> None:
        """Wait until it ends by itself."""
        if self._process is not None:
            self._process.wait()


@contextmanager
def demo_stack(home: Path, extractor: ExtractorBackend) -> Iterator[DemoStack]:
    """Start a stack in `home` and stop it at the end, or use the one that runs there.

    Raises
    ------
    StackError
        It cannot be started.
    ModelError
        A model is missing or broken.
    """
    if read_running_stack(home) is not None:
        with progress_display() as display:
            running = _ready(home, None, display)
        yield DemoStack(running, None)
        return
    process = _start(home, extractor)
    try:
        with progress_display() as display:
            running = _ready(home, process, display)
        yield DemoStack(running, process)
    finally:
        with progress_display() as display:
            display.show("stopping the service", None)
            end(process, signal.SIGTERM, seconds=_STOP_SECONDS)


def _start(home: Path, extractor: ExtractorBackend) -> subprocess.Popen[bytes]:
    Home(home).create()
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    chosen = {"HALLDETECT_HOME": str(home), "HALLDETECT_EXTRACTOR": extractor.value}
    return spawn(_COMMAND, log=_log(home), environment=inherited | chosen, folder=home)


def _ready(
    home: Path, process: subprocess.Popen[bytes] | None, display: ProgressDisplay
) -> RunningStack:
    """Wait until everything runs, and say how far it is."""
    give_up_at = time.monotonic() + _START_SECONDS
    while True:
        running = read_running_stack(home)
        if running is not None and running.is_ready:
            return running
        if process is not None and process.poll() is not None:
            raise StackError(f"the service ended while it was starting{log_tail(_log(home))}")
        if time.monotonic() > give_up_at:
            raise StackError(
                f"the service is not ready after {_START_SECONDS:.0f} s{log_tail(_log(home))}"
            )
        if running is not None:
            _refuse_broken_models(running)
        display.show(_how_far(running), None)
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _refuse_broken_models(running: RunningStack) -> None:
    """Raise what a worker reports that cannot load its models: waiting would not help."""
    workers = [c for c in running.children if c.pid is not None and _has_models(c)]
    if not workers:
        return  # there may be no tables yet
    observation = observe(running.database_url)
    for child in workers:
        worker = observation.worker(child.pid)
        if worker is not None and worker.state is WorkerState.FAILED:
            raise ModelError(worker.error or f"{child.name} cannot load its models")


def _has_models(child: RunningChild) -> bool:
    """Tell whether a process is a worker with a model; several of a kind are numbered."""
    return child.name.partition("-")[0] in (Queue.EXTRACTION, Queue.NLI)


def _how_far(running: RunningStack | None) -> str:
    """Name what is still to come; on one machine it takes a while."""
    children = running.children if running is not None else ()
    waiting = [child.name for child in children if child.state is not ChildState.RUNNING]
    return f"starting the service: {', '.join(waiting) or 'the servers'}"


def _log(home: Path) -> Path:
    return Home(home).logs / "up.log"
