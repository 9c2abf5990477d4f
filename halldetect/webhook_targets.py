"""Where the service may send: addresses of webhooks, and which of them are refused.

What a caller of the API names, the service calls from inside its network. So an address is used
only if it is public, or if the operator has listed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import SplitResult, urlsplit

from halldetect.errors import InputError

LONGEST_URL = 2048
SETTING = "HALLDETECT_WEBHOOK_ALLOWED_HOSTS"

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
# What a resolver would read as an IPv4 address, however it is written: 2130706433, 0x7f.1.
_LOOKS_LIKE_A_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_PORTS = {"http": 80, "https": 443}

# IANA's registry of special addresses, and the platform address of one cloud (168.63.129.16),
# which is public by number only.
_SPECIAL_V4 = [
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32"),
        *("169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
    )
]
# Nothing but global unicast; and of that neither documentation nor what holds an IPv4 address
# (Teredo, 6to4), which would lead back to where an IPv4 address may not.
_GLOBAL_V6 = ip_network("2000::/3")
_SPECIAL_V6 = [
    ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """The parts of a webhook's URL.

    Parameters
    ----------
    scheme : str
        ``https`` or ``http``.
    host : str
        Name in lower case, or address without brackets.
    port : int
        Where to connect.
    path : str
        With the query, as it goes into the request.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def address(self) -> Address | None:
        """The address that stands in the URL; None for a name."""
        return _address(self.host)

    @property
    def authority(self) -> str:
        """What the header ``Host`` says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def loggable(self) -> str:
        """What may be logged: paths and queries of webhooks often hold secrets."""
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    """What is allowed beside public addresses over https.

    Parameters
    ----------
    names : frozenset of str
        Hosts, in lower case: whatever they resolve to.
    networks : tuple
        Addresses.
    """

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> AllowedTargets:
        """Read hosts, addresses and networks with commas between them.

        Raises
        ------
        InputError
            Naming the first that is none of them.
        """
        names, networks = set(), []
        for entry in (part.strip() for part in text.split(",")):
            if not entry:
                continue
            if network := _network(entry):
                networks.append(network)
            elif _is_name(entry.lower().removesuffix(".")):
                names.add(entry.lower().removesuffix("."))
            else:
                raise InputError(
                    f"{entry!r} is no host, address or network: write hooks.example.org, 10.0.0.7 "
                    "or 10.0.0.0/24, with commas between them"
                )
        return cls(frozenset(names), tuple(networks))

    def allows(self, address: Address) -> bool:
        """Tell whether an address is listed."""
        return any(address in network for network in self.networks)

    def lists(self, target: WebhookTarget) -> bool:
        """Tell whether a URL's host stands in the list, as a name or as an address."""
        address = target.address
        if address is not None:
            return self.allows(address)
        return target.host in self.names

    def usable(self, target: WebhookTarget, resolved: Iterable[Address]) -> bool:
        """Tell whether every address that a host resolved to may be connected to."""
        if self.lists(target):
            return True
        return all(is_public(address) or self.allows(address) for address in resolved)


def parse_target(url: str, allowed: AllowedTargets) -> WebhookTarget:
    """Read the URL of a webhook and refuse what must not be called, as far as the URL tells.

    A name is not resolved here: what it leads to is looked at each time that something is sent.

    Raises
    ------
    InputError
        What is wrong with it. Its path and query, which may be secret, are not quoted.
    """
    target = _target(url)
    if allowed.lists(target):
        return target
    if target.scheme == "http":
        raise InputError(f"url: use https (http is for hosts that {SETTING} lists)")
    address = target.address
    is_local_name = target.host.rpartition(".")[2] == "localhost"
    if is_local_name or (address is not None and not is_public(address)):
        raise InputError(
            f"url: {target.host} is not a public address; whoever runs the service can allow it "
            f"({SETTING})"
        )
    return target


def loggable_target(url: str) -> str:
    """Return what may be logged of a URL."""
    try:
        return _target(url).loggable
    except InputError:
        return "an address that cannot be read"


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the public internet, and to one host of it."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _GLOBAL_V6 and not any(address in network for network in _SPECIAL_V6)


def _target(url: str) -> WebhookTarget:
    if not url:
        raise InputError("url: is empty; write an address such as https://hooks.example.org/x")
    if len(url) > LONGEST_URL:
        raise InputError(f"url: has {len(url):,} characters; at most {LONGEST_URL:,} are allowed")
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise InputError(
            "url: write it in ASCII without white space or backslashes: other characters are "
            "percent-encoded, and other names are written as xn--..."
        )
    parts, port = _split(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InputError("url: write an address such as https://hooks.example.org/halldetect")
    if "@" in parts.netloc:
        raise InputError("url: leave out the user and the password: requests are signed instead")
    if "#" in url:
        raise InputError("url: leave out the fragment (#...): it is never sent")
    host = parts.hostname.lower().removesuffix(".")
    if _address(host) is None and not _is_name(host):
        raise InputError(
            "url: the host is neither a name nor an address in its usual form (192.0.2.7, "
            "[2001:db8::7])"
        )
    path = parts.path or "/"
    return WebhookTarget(
        parts.scheme,
        host,
        _PORTS[parts.scheme] if port is None else port,
        f"{path}?{parts.query}" if parts.query else path,
    )


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InputError("url: the host or the port is not in order") from None
    if port == 0:
        raise InputError("url: there is no port 0")
    return parts, port


def _address(host: str) -> Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    # An address with a zone is one of this machine's links.
    return None if isinstance(address, IPv6Address) and address.scope_id else address


def _network(text: str) -> Network | None:
    try:
        return ip_network(text.removeprefix("[").removesuffix("]"), strict=False)
    except ValueError:
        return None


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(host) <= 253
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _LOOKS_LIKE_A_NUMBER.fullmatch(labels[-1])
    )
