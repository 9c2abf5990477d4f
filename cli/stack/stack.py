"""The embedded stack from its first process to its last."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import psutil
import redis
from pydantic import SecretStr

from cli.stack.addresses import API, POSTGRES, VALKEY, Addresses
from cli.stack.children import Child, ChildPlan, ChildState
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.leftovers import stop_leftovers
from cli.stack.observations import NOT_LOOKED, Observer
from cli.stack.passwords import kept_password
from cli.stack.postgres import STOP_SIGNAL, PostgresServer
from cli.stack.run_file import RunningChild, RunningStack, write_run_file
from cli.stack.screen import Screen
from cli.stack.services import Services
from cli.stack.stop_requests import StopRequests
from cli.stack.supervisor import Supervisor
from cli.stack.valkey import ValkeyServer
from halldetect.settings import Settings

_TICK_SECONDS = 0.2
_SERVER_GRACE_SECONDS = 30.0
_ANSWER_SECONDS = 5.0


class Stack:
    """Servers and services, from `start` to `stop`.

    Parameters
    ----------
    settings : Settings
        What the user chose.
    home : Home
        Where data and logs are; ours alone while we run.
    screen : Screen
        Where to say what happens.
    requests : StopRequests
        Whether somebody wants us to stop.
    extraction_workers, nli_workers : int
        How many of each.
    """

    def __init__(
        self,
        settings: Settings,
        home: Home,
        screen: Screen,
        requests: StopRequests,
        *,
        extraction_workers: int,
        nli_workers: int,
    ) -> None:
        self._settings = settings
        self._home = home
        self._screen = screen
        self._requests = requests
        self._workers = {"extraction_workers": extraction_workers, "nli_workers": nli_workers}
        self._addresses = Addresses(settings, kept_password(home.flower_password))
        self._begun_at = time.monotonic()
        self._supervisor = Supervisor(self._record)
        self._observer: Observer | None = None
        self._state: RunningStack | None = None

    def run(self) -> None:
        """Start everything and watch over it until somebody asks to stop.

        Raises
        ------
        UnavailableError
            A server cannot be started or reached.
        """
        for name in stop_leftovers(self._home.root):
            self._screen.say(f"{name} was left over from a stack that was killed: stopped")
        servers = self._prepare_servers()
        services = self._services()
        first, later = services.first(), services.later()
        self._supervisor.add([*servers, *first, *later])
        self._start_servers(_names(servers))
        if self._requests.is_made:
            return
        self._prepare_database()
        services.observer.start()
        self._say(self._supervisor.start(_names(first)))
        # Starting is mostly importing: what can wait leaves the processors to what cannot.
        while ChildState.STARTING in self._supervisor.states({API}) and not self._requests.is_made:
            self._tick()
        if self._requests.is_made:
            return
        self._say(self._supervisor.start(_names(later)))
        self._watch()

    def stop(self) -> None:
        """Stop whatever runs: first what brings work, then what does it, the servers last."""
        if self._observer is not None:
            self._observer.stop()
        alive = {child.name for child in self._supervisor.children if child.pid is not None}
        servers = {POSTGRES, VALKEY}
        for group in ({API}, alive - servers - {API}, {VALKEY}, {POSTGRES}):
            self._stop_group(group & alive)
        self._home.run_file.unlink(missing_ok=True)

    def _prepare_servers(self) -> list[ChildPlan]:
        """Make the servers that are ours ready to be started, and note all addresses."""
        database_url, redis_url = self._settings.database_url, self._settings.redis_url
        plans = []
        if redis_url is not None:
            _check_redis(redis_url.get_secret_value())
        if database_url is None:
            log = self._home.logs / "postgres.log"
            postgres = PostgresServer(self._home.postgres, log=log)
            if not postgres.has_data:
                self._screen.say("making the database ...")
            postgres.prepare()
            postgres.port = self._port(POSTGRES)
            database_url = SecretStr(postgres.url)
            plans.append(_server_plan(POSTGRES, postgres, STOP_SIGNAL))
        if redis_url is None:
            log = self._home.logs / "valkey.log"
            valkey = ValkeyServer(self._home.valkey, self._port(VALKEY), log=log)
            valkey.prepare()
            redis_url = SecretStr(valkey.url)
            plans.append(_server_plan(VALKEY, valkey, signal.SIGTERM))
        self._state = RunningStack(
            pid=os.getpid(),
            started_at=datetime.now(UTC),
            home=self._home.root,
            api_url=self._addresses.api_url,
            flower_url=self._addresses.flower_url,
            database_url=database_url.get_secret_value(),
            redis_url=redis_url.get_secret_value(),
        )
        return plans

    def _port(self, server: str) -> int:
        message = self._addresses.settle(server)
        if message is not None:
            self._screen.say(message)
        return self._addresses.ports[server]

    def _services(self) -> Services:
        self._observer = Observer(self._running.database_url)
        return Services(
            home=self._home,
            settings=self._settings,
            addresses=self._addresses,
            database_url=self._running.database_url,
            redis_url=self._running.redis_url,
            observer=self._observer,
            **self._workers,
        )

    def _start_servers(self, names: set[str]) -> None:
        """Start the servers and wait for them; one that cannot start is the end."""
        self._say(self._supervisor.start(names))
        while self._supervisor.states(names) - {ChildState.RUNNING}:
            messages = self._supervisor.check()
            if ChildState.RESTARTING in self._supervisor.states(names):
                raise StackError("\n".join(messages))
            self._say(messages)
            if self._requests.is_made:
                return
            self._pause()

    def _prepare_database(self) -> None:
        from db.migrate import upgrade  # a while to import, in which the servers are at work

        upgrade(self._running.database_url)

    def _watch(self) -> None:
        while not (self._running.is_ready or self._requests.is_made):
            self._tick()
        if not self._requests.is_made:
            self._announce()
        while not self._requests.is_made:
            self._tick()

    def _announce(self) -> None:
        seconds = time.monotonic() - self._begun_at
        message = f"everything runs, after {seconds:.1f} s; Ctrl-C stops it, and the data stays"
        self._screen.announce(message, self._running)

    def _stop_group(self, names: set[str]) -> None:
        if not names:
            return
        are_servers = bool(names & {POSTGRES, VALKEY})
        again = "" if are_servers else "; Ctrl-C again does not wait for what they have begun"
        # What is said while stopping may have no reader any more; all is stopped nonetheless.
        with suppress(OSError):
            self._screen.say(f"stopping {', '.join(sorted(names))}{again}")
        for message in self._supervisor.stop(
            names,
            is_urgent=lambda: self._requests.is_urgent and not are_servers,
            tick=self._show_quietly,
        ):
            with suppress(OSError):
                self._screen.say(message)

    @property
    def _running(self) -> RunningStack:
        if self._state is None:
            raise RuntimeError("the stack has no addresses before its servers start")
        return self._state

    def _record(self, children: Sequence[Child]) -> None:
        """Keep the run file true."""
        listed = tuple(
            RunningChild(
                name=child.name,
                state=child.state,
                pid=child.pid,
                created_at=_creation_time(child.pid),
                log=child.plan.log,
                metrics_url=self._addresses.metrics_url(child.name),
            )
            for child in children
        )
        self._state = self._running.model_copy(
            update={
                "children": listed,
                "api_url": self._addresses.api_url,
                "flower_url": self._addresses.flower_url,
            }
        )
        write_run_file(self._state)

    def _say(self, messages: Sequence[str]) -> None:
        for message in messages:
            self._screen.say(message)

    def _tick(self) -> None:
        self._say(self._supervisor.check())
        self._pause()

    def _pause(self) -> None:
        self._show()
        time.sleep(_TICK_SECONDS)

    def _show(self) -> None:
        self._screen.show(self._running, self._observer.latest if self._observer else NOT_LOOKED)

    def _show_quietly(self) -> None:
        with suppress(OSError):
            self._show()


def _server_plan(
    name: str, server: PostgresServer | ValkeyServer, stop_signal: signal.Signals
) -> ChildPlan:
    return ChildPlan(
        name=name,
        launch=server.launch,
        is_ready=server.is_ready,
        log=server.log,
        stop_signal=stop_signal,
        grace_seconds=_SERVER_GRACE_SECONDS,
    )


def _names(plans: Sequence[ChildPlan]) -> set[str]:
    return {plan.name for plan in plans}


def _check_redis(url: str) -> None:
    """Raise a clear error if the user's own Redis does not answer."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=_ANSWER_SECONDS) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise StackError(f"REDIS_URL: the server cannot be used: {error}") from None


def _creation_time(pid: int | None) -> float | None:
    try:
        return None if pid is None else psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None
