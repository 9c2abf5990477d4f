"""The faults of a chaos run: what each does to a running stack, and when that is over."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil
import psycopg
import redis
from own_stack import OwnStack

from cli.stack.addresses import API, POSTGRES, VALKEY
from cli.stack.services import BEAT
from queues.names import Queue

EXTRACTION, NLI, MAINTENANCE = (Queue.EXTRACTION.value, Queue.NLI.value, Queue.MAINTENANCE.value)
_STOPPED_SECONDS = 6.0
_CUT = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    Parameters
    ----------
    name : str
        As the report shows it.
    part : str
        The part that is struck; it must be ready before, and is waited for afterwards.
    strike : callable
        Does it, given the stack and the part's process id.
    starts_again : bool
        Whether the part comes back as another process.
    during_upload : bool
        Whether it is to strike while an upload is on its way.
    """

    name: str
    part: str
    strike: Callable[[OwnStack, int], None]
    starts_again: bool = True
    during_upload: bool = False


def send(number: signal.Signals) -> Callable[[OwnStack, int], None]:
    """Return what sends a signal to the part."""
    return lambda _, pid: os.kill(pid, number)


def restart_empty(stack: OwnStack, pid: int) -> None:
    """Kill Valkey and delete what it would read at its next start."""
    os.kill(pid, signal.SIGKILL)
    for path in stack.valkey_data:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def stop_for_a_while(_: OwnStack, pid: int) -> None:
    """Let a process stand still for some seconds: its connections stay, and nothing answers.

    Returns at once, so that other faults strike meanwhile.
    """
    process = psutil.Process(pid)
    process.suspend()
    threading.Timer(_STOPPED_SECONDS, _resume, (process,)).start()


def _resume(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):  # killed meanwhile
        process.resume()


def flush_all(stack: OwnStack, _: int) -> None:
    """Let Valkey forget everything while it runs."""
    with redis.Redis.from_url(stack.running.redis_url) as client:
        client.flushall()


def cut_connections(stack: OwnStack, _: int) -> None:
    """Cut every connection to Postgres, which goes on running."""
    with psycopg.connect(stack.running.database_url, autocommit=True) as connection:
        connection.execute(_CUT)


KILL_EXTRACTION = Fault("kill -9 extraction worker", EXTRACTION, send(signal.SIGKILL))
KILL_NLI = Fault("kill -9 NLI worker", NLI, send(signal.SIGKILL))
KILL_MAINTENANCE = Fault("kill -9 maintenance worker", MAINTENANCE, send(signal.SIGKILL))
KILL_BEAT = Fault("kill -9 beat", BEAT, send(signal.SIGKILL))
KILL_API = Fault("kill -9 API", API, send(signal.SIGKILL))
KILL_API_DURING_UPLOAD = Fault(
    "kill -9 API during an upload", API, send(signal.SIGKILL), during_upload=True
)
END_EXTRACTION = Fault("SIGTERM extraction worker", EXTRACTION, send(signal.SIGTERM))
END_NLI = Fault("SIGTERM NLI worker", NLI, send(signal.SIGTERM))
KILL_VALKEY = Fault("Valkey killed", VALKEY, send(signal.SIGKILL))
EMPTY_VALKEY = Fault("Valkey killed, back empty", VALKEY, restart_empty)
STOP_VALKEY = Fault("Valkey stopped 6 s", VALKEY, stop_for_a_while, starts_again=False)
FLUSH_VALKEY = Fault("FLUSHALL", VALKEY, flush_all, starts_again=False)
KILL_POSTGRES = Fault("Postgres killed", POSTGRES, send(signal.SIGKILL))
RESTART_POSTGRES = Fault("Postgres stopped at once", POSTGRES, send(signal.SIGQUIT))
CUT_CONNECTIONS = Fault("connections cut", POSTGRES, cut_connections, starts_again=False)

# In an order that gives each part some time before it is struck again.
FAULTS = (
    KILL_NLI,
    FLUSH_VALKEY,
    KILL_EXTRACTION,
    KILL_API_DURING_UPLOAD,
    CUT_CONNECTIONS,
    KILL_BEAT,
    STOP_VALKEY,
    END_NLI,
    RESTART_POSTGRES,
    END_EXTRACTION,
    EMPTY_VALKEY,
    KILL_MAINTENANCE,
    KILL_API,
    KILL_POSTGRES,
    KILL_VALKEY,
)
