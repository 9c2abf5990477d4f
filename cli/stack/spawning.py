"""How a child process starts: its log, its own session, its user, and its end with its parent."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.stack.errors import StackError

_NOBODY = 65534
_CAPABILITY_BITS = {"dac_read_search": 2, "dac_override": 1}


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path = Path("/"),
    stdin: Path | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
    unprivileged: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, out of reach of the terminal's Ctrl-C.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    log : Path
        File to append both output streams to.
    environment : mapping or None
        The child's environment; None hands on our own.
    folder : Path
        Where the child runs.
    stdin : Path or None
        What the child reads; None is nothing.
    death_signal : signal.Signals
        What the child receives when this process is killed, where the system can do that.
    unprivileged : bool
        Run as nobody if we are root: Postgres refuses to run as root.

    Raises
    ------
    StackError
        The program cannot be started.
    """
    as_nobody = unprivileged and os.geteuid() == 0
    prefix = _prefix(death_signal, as_nobody=as_nobody)
    try:
        with log.open("ab") as stream, open(stdin or os.devnull, "rb") as read:
            return subprocess.Popen(  # noqa: S603  # nosec B603  # our own commands, without a shell
                [*prefix, *command],
                stdin=read,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
                user=_NOBODY if as_nobody and not prefix else None,
                group=_NOBODY if as_nobody and not prefix else None,
                extra_groups=[] if as_nobody and not prefix else None,
            )
    except OSError as error:
        raise StackError(f"{command[0]} cannot be started: {error}") from None


def give_to_unprivileged(path: Path) -> None:
    """Make `path` the property of the user that unprivileged children run as."""
    if os.geteuid() == 0:
        os.chown(path, _NOBODY, _NOBODY)


def _prefix(death_signal: signal.Signals, *, as_nobody: bool) -> list[str]:
    """Return the call of setpriv that goes before a command, or nothing where it cannot help."""
    if not sys.platform.startswith("linux"):
        return []
    signal_options = ("--pdeathsig", death_signal.name.removeprefix("SIG"))
    if not as_nobody:
        return _working_setpriv(signal_options)
    user = ("--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups", "--no-new-privs")
    # Folders above the data may be closed to others, as /root is: nobody may pass through them.
    capability = _passage_capability()
    passage = (
        (f"--inh-caps=-all,+{capability}", f"--ambient-caps=-all,+{capability}")
        if capability
        else ()
    )
    return _working_setpriv((*user, *passage, *signal_options))


@functools.cache
def _working_setpriv(options: tuple[str, ...]) -> list[str]:
    """Return setpriv with `options`, or nothing if it is missing, too old or not allowed."""
    setpriv, true = shutil.which("setpriv"), shutil.which("true")
    if setpriv is None or true is None:
        return []
    prefix = [setpriv, *options, "--"]
    tried = subprocess.run([*prefix, true], capture_output=True, check=False)  # noqa: S603  # nosec B603  # a program of the system
    return prefix if tried.returncode == 0 else []


def _passage_capability() -> str | None:
    """Return the least capability of ours that opens folders closed to others."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    for line in status.splitlines():
        if line.startswith("CapPrm:"):
            permitted = int(line.split()[1], 16)
            for name, bit in _CAPABILITY_BITS.items():
                if permitted >> bit & 1:
                    return name
    return None
