"""How an embedded server is started, waited for and ended, whichever it is."""

from __future__ import annotations

import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from cli.stack.errors import StackError
from cli.stack.ports import free_port
from cli.stack.server_process import end, wait_until_ready


class EmbeddedServer(ABC):
    """A server over a folder, as a child of this process; it listens on loopback only.

    Parameters
    ----------
    folder : Path
        Holds what it keeps, its password and its log; made by the first start.
    port : int or None
        Where to listen; None takes any free port.
    log : Path or None
        File for its messages; None is one in `folder`, by its name.
    """

    name: ClassVar[str]
    start_seconds: ClassVar[float]
    stop_signal: ClassVar[signal.Signals]
    stop_seconds: ClassVar[float]

    def __init__(self, folder: Path, port: int | None = None, *, log: Path | None = None) -> None:
        self._folder = folder.absolute()
        self.log = log or self._folder / f"{self.name.lower()}.log"
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """Where to reach it, password included."""

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def start(self) -> None:
        """Prepare and start the server, and wait until it answers.

        Raises
        ------
        StackError
            The wheel is missing, or the server cannot run; with the end of its log.
        """
        self.prepare()
        process = self.launch()
        try:
            wait_until_ready(
                process, self.name, self.is_ready, log=self.log, seconds=self.start_seconds
            )
        except StackError:
            self.stop()
            raise

    @abstractmethod
    def prepare(self) -> None:
        """Make what the server needs before it starts."""

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server's process, once prepared, without waiting for it."""
        self._process = self._spawn()
        return self._process

    @abstractmethod
    def _spawn(self) -> subprocess.Popen[bytes]: ...

    @abstractmethod
    def is_ready(self, pid: int) -> bool:
        """Tell whether the server with this process id answers."""

    def stop(self) -> None:
        """Let it write everything down and end."""
        if self._process is not None:
            end(self._process, self.stop_signal, seconds=self.stop_seconds)
