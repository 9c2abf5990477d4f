"""The servers under the stack: the user's, or our own, each on a port that it really gets."""

from __future__ import annotations

from collections.abc import Callable

import redis

from cli.stack.addresses import POSTGRES, VALKEY, Addresses
from cli.stack.children import ChildPlan
from cli.stack.embedded_server import EmbeddedServer
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.ports import is_free
from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from halldetect.settings import Settings

_GRACE_SECONDS = 30.0
_ANSWER_SECONDS = 5.0


class Servers:
    """Where the database and the broker are, and how to run those that are ours.

    Parameters
    ----------
    settings : Settings
        Name the user's own servers, if any.
    home : Home
        Where data and logs of ours are.
    addresses : Addresses
        The ports to listen on.
    """

    def __init__(self, settings: Settings, home: Home, addresses: Addresses) -> None:
        self._settings = settings
        self._addresses = addresses
        self._ours: dict[str, EmbeddedServer] = {}
        self._are_known = False
        if settings.database_url is None:
            log = home.logs / "postgres.log"
            self._ours[POSTGRES] = PostgresServer(home.postgres, addresses.ports[POSTGRES], log=log)
        if settings.redis_url is None:
            log = home.logs / "valkey.log"
            self._ours[VALKEY] = ValkeyServer(home.valkey, addresses.ports[VALKEY], log=log)

    @property
    def database_url(self) -> str:
        """The address of the database, password included."""
        given = self._settings.database_url
        return self._ours[POSTGRES].url if given is None else given.get_secret_value()

    @property
    def redis_url(self) -> str:
        """The address of the broker, password included."""
        given = self._settings.redis_url
        return self._ours[VALKEY].url if given is None else given.get_secret_value()

    def prepare(self, say: Callable[[str], None]) -> list[ChildPlan]:
        """Make what our servers need, and return how to run them.

        Raises
        ------
        StackError
            The user's Redis does not answer, or a server of ours cannot be made.
        """
        if self._settings.redis_url is not None:
            _check_redis(self.redis_url)
        for server in self._ours.values():
            if isinstance(server, PostgresServer) and not server.has_data:
                say("making the database ...")
            server.prepare()
        return [self._plan(name, server) for name, server in self._ours.items()]

    def keep_ports(self) -> None:
        """Let no server move to another port any more: others have begun to look for it."""
        self._are_known = True

    def has_lost_port(self, name: str) -> bool:
        """Tell whether somebody else listens where a server of ours, which has ended, was to be."""
        return not self._are_known and not is_free(self._ours[name].port)

    def _plan(self, name: str, server: EmbeddedServer) -> ChildPlan:
        return ChildPlan(
            name=name,
            launch=server.launch,
            is_ready=server.is_ready,
            log=server.log,
            before_launch=lambda: self._take_port(name),
            stop_signal=server.stop_signal,
            grace_seconds=_GRACE_SECONDS,
        )

    def _take_port(self, name: str) -> str | None:
        if self._are_known:
            return None
        server = self._ours[name]
        message = self._addresses.settle(name)
        server.port = self._addresses.ports[name]
        server.prepare()
        return message


def _check_redis(url: str) -> None:
    """Raise a clear error if the user's own Redis does not answer."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=_ANSWER_SECONDS) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise StackError(f"REDIS_URL: the server cannot be used: {error}") from None
