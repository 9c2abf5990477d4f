"""The embedded stack from its first process to its last."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import psutil

from cli.stack.addresses import API, POSTGRES, VALKEY, Addresses
from cli.stack.children import Child, ChildPlan, ChildState
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.leftovers import stop_leftovers
from cli.stack.observations import Observer
from cli.stack.passwords import kept_password
from cli.stack.run_file import RunningChild, RunningStack, write_run_file
from cli.stack.screen import Screen
from cli.stack.servers import Servers
from cli.stack.services import Services
from cli.stack.stop_requests import StopRequests
from cli.stack.supervisor import Supervisor
from halldetect.settings import Settings

_TICK_SECONDS = 0.2


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
        self._home = home
        self._screen = screen
        self._requests = requests
        self._addresses = Addresses(settings, kept_password(home.flower_password))
        self._servers = Servers(settings, home, self._addresses)
        self._observer = Observer()
        self._services = Services(
            home=home,
            settings=settings,
            addresses=self._addresses,
            servers=self._servers,
            extraction_workers=extraction_workers,
            nli_workers=nli_workers,
            observer=self._observer,
        )
        self._begun_at, self._started_at = time.monotonic(), datetime.now(UTC)
        self._supervisor = Supervisor(self._record)
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
        servers = self._servers.prepare(self._screen.say)
        first, later = self._services.first(), self._services.later()
        self._supervisor.add([*servers, *first, *later])
        self._start_servers(_names(servers))
        if self._requests.is_made:
            return
        self._servers.keep_ports()
        self._prepare_database()
        self._observer.start(self._servers.database_url)
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
        self._observer.stop()
        alive = {child.name for child in self._supervisor.children if child.pid is not None}
        servers = {POSTGRES, VALKEY}
        for group in ({API}, alive - servers - {API}, {VALKEY}, {POSTGRES}):
            self._stop_group(group & alive)
        self._home.run_file.unlink(missing_ok=True)

    def _start_servers(self, names: set[str]) -> None:
        """Start the servers and wait for them; one that cannot start is the end.

        One whose port another program took in the last moment is started again, on another port.
        """
        messages = self._supervisor.start(names)
        known: set[str] = set()
        while True:
            ended = self._supervisor.in_state(ChildState.RESTARTING) & names
            if not all(self._servers.has_lost_port(name) for name in ended - known):
                raise StackError("\n".join(messages))
            known = ended
            self._say(messages)
            if self._requests.is_made or not self._supervisor.states(names) - {ChildState.RUNNING}:
                return
            self._pause()
            messages = self._supervisor.check()

    def _prepare_database(self) -> None:
        from db.migrate import upgrade  # a while to import, in which the servers are at work

        upgrade(self._servers.database_url)

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
        self._state = RunningStack(
            pid=os.getpid(),
            started_at=self._started_at,
            home=self._home.root,
            api_url=self._addresses.api_url,
            flower_url=self._addresses.flower_url,
            database_url=self._servers.database_url,
            redis_url=self._servers.redis_url,
            children=listed,
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
        self._screen.show(self._running, self._observer.latest)

    def _show_quietly(self) -> None:
        with suppress(OSError):
            self._show()


def _names(plans: Sequence[ChildPlan]) -> set[str]:
    return {plan.name for plan in plans}


def _creation_time(pid: int | None) -> float | None:
    try:
        return None if pid is None else psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None
