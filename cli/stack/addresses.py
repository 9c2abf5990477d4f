"""Where the stack's parts listen: the wanted ports, or free ones where those are taken."""

from __future__ import annotations

from cli.stack.ports import LOOPBACK, free_port, port_or_another
from halldetect.settings import Settings

POSTGRES = "postgres"
VALKEY = "valkey"
API = "api"
FLOWER = "flower"
_PARTS = (POSTGRES, VALKEY, API, FLOWER)

# Not the servers' usual ports, where the machine's own are likely to be.
_POSTGRES_PORT = 15432
_VALKEY_PORT = 16379
_LAST_PORT = 65535
_FLOWER_USER = "halldetect"
_EVERY_INTERFACE = ("0.0.0.0", "::", "")  # noqa: S104  # recognised here, never bound to


class Addresses:
    """One port for each part that listens, workers' figures included, and the addresses of them.

    Parameters
    ----------
    settings : Settings
        The wanted ports, and the hosts at which the API and the workers' figures are.
    flower_password : str
        What Flower asks for.
    """

    def __init__(self, settings: Settings, flower_password: str) -> None:
        self._api_host = settings.api_host
        self._flower_password = flower_password
        self._metrics_host = settings.metrics_host
        self._metrics_port = settings.metrics_port
        self.ports = {
            POSTGRES: _POSTGRES_PORT,
            VALKEY: _VALKEY_PORT,
            API: settings.api_port,
            FLOWER: settings.flower_port,
        }

    def settle(self, part: str) -> str | None:
        """Choose another port for `part` if its own is taken; return what to say of it.

        Whoever is about to start the part asks, each time: between the choice of a port and the
        moment that a program listens, another program can have taken it.
        """
        host = self._host(part)
        owners = {port: name for name, port in self.ports.items() if name != part}
        wanted = self.ports[part] if part in self.ports else self._worker_port()
        if wanted > _LAST_PORT:
            self.ports[part] = port_or_another(free_port(host), host, except_for=owners)
            return f"there is no port {wanted}: {part} listens on {self.ports[part]}"
        self.ports[part] = port_or_another(wanted, host, except_for=owners)
        if self.ports[part] == wanted:
            return None
        taken = f"for {owners[wanted]}" if wanted in owners else "taken"
        return f"port {wanted} is {taken}: {part} listens on {self.ports[part]}"

    def _host(self, part: str) -> str:
        """Return where a part listens."""
        if part in (POSTGRES, VALKEY, FLOWER):
            return LOOPBACK
        return self._api_host if part == API else self._metrics_host

    def _worker_port(self) -> int:
        """Return where another worker's figures are to be read: the ports follow each other."""
        if self._metrics_port is None:
            return free_port(self._metrics_host)
        return self._metrics_port + len(self.ports) - len(_PARTS)

    @property
    def api_url(self) -> str:
        """Where to reach the API from this machine."""
        return self._url(API)

    def metrics_url(self, part: str) -> str | None:
        """Where to reach the figures of the API or of a worker; None for what has none."""
        if part == API:
            return f"{self.api_url}/metrics"
        if part in _PARTS or part not in self.ports:
            return None
        return f"{self._url(part)}/metrics"

    def _url(self, part: str) -> str:
        host = self._host(part)
        if host in _EVERY_INTERFACE:
            host = LOOPBACK
        return f"http://{f'[{host}]' if ':' in host else host}:{self.ports[part]}"

    @property
    def flower_credentials(self) -> str:
        """User and password, as Flower reads them."""
        return f"{_FLOWER_USER}:{self._flower_password}"

    @property
    def flower_url(self) -> str:
        """Where to reach Flower, with user and password, which a browser takes as it is."""
        return f"http://{self.flower_credentials}@{LOOPBACK}:{self.ports[FLOWER]}"
