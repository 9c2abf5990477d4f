"""Where the stack's parts listen: the wanted ports, or free ones where those are taken."""

from __future__ import annotations

from cli.stack.ports import LOOPBACK, port_or_another
from halldetect.settings import Settings

POSTGRES = "postgres"
VALKEY = "valkey"
API = "api"
FLOWER = "flower"

# Not the servers' usual ports, where the machine's own are likely to be.
_POSTGRES_PORT = 15432
_VALKEY_PORT = 16379
_FLOWER_USER = "halldetect"
_EVERY_INTERFACE = ("0.0.0.0", "::", "")  # noqa: S104  # recognised here, never bound to


class Addresses:
    """One port for each part that listens, and the addresses made of them.

    Parameters
    ----------
    settings : Settings
        The wanted ports, and where the API listens.
    flower_password : str
        What Flower asks for.
    """

    def __init__(self, settings: Settings, flower_password: str) -> None:
        self._api_host = settings.api_host
        self._flower_password = flower_password
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
        host = self._api_host if part == API else LOOPBACK
        others = [port for name, port in self.ports.items() if name != part]
        wanted = self.ports[part]
        self.ports[part] = port_or_another(wanted, host, except_for=others)
        if self.ports[part] == wanted:
            return None
        return f"port {wanted} is taken: {part} listens on {self.ports[part]}"

    @property
    def api_url(self) -> str:
        """Where to reach the API from this machine."""
        host = LOOPBACK if self._api_host in _EVERY_INTERFACE else self._api_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.ports[API]}"

    @property
    def flower_credentials(self) -> str:
        """User and password, as Flower reads them."""
        return f"{_FLOWER_USER}:{self._flower_password}"

    @property
    def flower_url(self) -> str:
        """Where to reach Flower, with user and password, which a browser takes as it is."""
        return f"http://{self.flower_credentials}@{LOOPBACK}:{self.ports[FLOWER]}"
