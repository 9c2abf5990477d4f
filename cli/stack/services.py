"""What the stack runs beside its servers: the commands, their environment, and their readiness."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from cli.stack.addresses import API, FLOWER, Addresses
from cli.stack.children import ChildPlan
from cli.stack.home import Home
from cli.stack.observations import Observer
from cli.stack.ports import LOOPBACK
from cli.stack.servers import Servers
from cli.stack.spawning import spawn
from halldetect.settings import Settings
from queues.names import Queue

BEAT = "beat"

# A worker ends what its models have begun: an audit that is cut off has to be done again.
_WORKER_GRACE_SECONDS = 60.0
_ANSWER_SECONDS = 2.0
_PYTHON = (sys.executable, "-m")
_CELERY = (*_PYTHON, "celery", "--app=worker.app")
# Files: the processes run in another folder than the one that the names were written for.
_PATHS = ("extractor_model", "nli_model")
# What we set ourselves, and the user's own API key, which only client commands send.
_NOT_INHERITED = ("HALLDETECT_DATABASE_URL", "HALLDETECT_REDIS_URL", "HALLDETECT_API_KEY")


@dataclass(frozen=True)
class Services:
    """Everything that the commands depend on.

    Parameters
    ----------
    home : Home
        Logs, and where the processes run.
    settings : Settings
        What the user chose.
    addresses : Addresses
        Where to listen.
    servers : Servers
        Where the database and the broker are.
    extraction_workers, nli_workers : int
        How many of each.
    observer : Observer
        Knows which workers have reported.
    """

    home: Home
    settings: Settings
    addresses: Addresses
    servers: Servers
    extraction_workers: int
    nli_workers: int
    observer: Observer

    def first(self) -> list[ChildPlan]:
        """Return how to run what an audit needs; the slowest to start come first."""
        return [
            *(self._worker(Queue.NLI, number) for number in range(1, self.nli_workers + 1)),
            *(
                self._worker(Queue.EXTRACTION, number)
                for number in range(1, self.extraction_workers + 1)
            ),
            self._api(),
        ]

    def later(self) -> list[ChildPlan]:
        """Return how to run what watches and cleans up, and can wait until the rest is there."""
        return [self._worker(Queue.MAINTENANCE, 1), self._beat(), self._flower()]

    def _worker(self, queue: Queue, number: int) -> ChildPlan:
        name = queue.value if number == 1 else f"{queue.value}-{number}"
        command = [
            *_CELERY,
            "worker",
            f"--queues={queue.value}",
            # A thread beside the main one, which goes on reporting while a model runs.
            "--pool=threads",
            "--concurrency=1",
            f"--hostname={name}@%h",
            "--loglevel=INFO",
            # Both are talk between workers at their start, a second each; nobody listens.
            "--without-mingle",
            "--without-gossip",
        ]
        return self._plan(
            name,
            lambda: command,
            is_ready=self.observer.worker_is_ready,
            before_launch=lambda: self.addresses.settle(name),
            grace=_WORKER_GRACE_SECONDS,
            variables=lambda: {
                "HALLDETECT_METRICS_PORT": str(self.addresses.ports[name]),
            },
        )

    def _api(self) -> ChildPlan:
        return self._plan(
            API,
            lambda: [*_PYTHON, "api"],
            is_ready=lambda pid: (
                _listens(pid, self.addresses.ports[API])
                and _answers(self.addresses.api_url, "/healthz")
            ),
            before_launch=lambda: self.addresses.settle(API),
        )

    def _beat(self) -> ChildPlan:
        schedule = self.home.run / "beat-schedule"
        command = [*_CELERY, "beat", f"--schedule={schedule}", "--pidfile=", "--loglevel=INFO"]
        return self._plan(BEAT, lambda: command, is_ready=lambda pid: _has_written(pid, schedule))

    def _flower(self) -> ChildPlan:
        return self._plan(
            FLOWER,
            lambda: [
                *_CELERY,
                "flower",
                f"--address={LOOPBACK}",
                f"--port={self.addresses.ports[FLOWER]}",
                "--persistent=False",
            ],
            is_ready=lambda pid: _listens(pid, self.addresses.ports[FLOWER]),
            before_launch=lambda: self.addresses.settle(FLOWER),
        )

    def _plan(
        self,
        name: str,
        command: Callable[[], list[str]],
        *,
        is_ready: Callable[[int], bool],
        before_launch: Callable[[], str | None] = lambda: None,
        grace: float = 10.0,
        variables: Callable[[], dict[str, str]] = dict,
    ) -> ChildPlan:
        log = self.home.logs / f"{name}.log"
        return ChildPlan(
            name=name,
            launch=lambda: spawn(
                command(),
                log=log,
                environment=self.environment() | variables(),
                folder=self.home.root,
            ),
            is_ready=is_ready,
            log=log,
            before_launch=before_launch,
            grace_seconds=grace,
        )

    def environment(self) -> dict[str, str]:
        """Return our own environment, plus the settings that options changed, plus the servers."""
        inherited = {
            name: value for name, value in os.environ.items() if name not in _NOT_INHERITED
        }
        return (
            inherited
            | _as_variables(self.settings)
            | {
                "HALLDETECT_API_PORT": str(self.addresses.ports[API]),
                "DATABASE_URL": self.servers.database_url,
                "REDIS_URL": self.servers.redis_url,
                "FLOWER_BASIC_AUTH": self.addresses.flower_credentials,
                # Idle OpenMP threads of one model spin and take the processor from the other.
                "OMP_WAIT_POLICY": "PASSIVE",
                # No folder that happens to be called api or worker is taken for ours.
                "PYTHONSAFEPATH": "1",
                "PYTHONUNBUFFERED": "1",
            }
        )


def _as_variables(settings: Settings) -> dict[str, str]:
    """Return what was chosen, by variable or by option, as the variables that say the same."""
    variables = {}
    for name in settings.model_fields_set - {"database_url", "redis_url", "api_key"}:
        value = getattr(settings, name)
        if name in _PATHS and Path(value).expanduser().exists():
            value = Path(value).expanduser().absolute()
        if value is not None:
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            variables[f"HALLDETECT_{name.upper()}"] = text
    return variables


def _listens(pid: int, port: int) -> bool:
    """Tell whether this very process listens on `port`: a stranger may have been there first."""
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.Error:
        return False
    return any(
        connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        for connection in connections
    )


def _answers(url: str, path: str) -> bool:
    """Tell whether a GET of `path` succeeds."""
    place = url.removeprefix("http://")
    connection = http.client.HTTPConnection(place, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _has_written(pid: int, file: Path) -> bool:
    """Tell whether `file`, whatever ending it is given, was written since the process began."""
    try:
        begun_at = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return False
    return any(found.stat().st_mtime >= begun_at for found in file.parent.glob(f"{file.name}*"))
