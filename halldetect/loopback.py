"""Which addresses nobody but this machine reaches."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Tell whether `host`, a name or an address, leads to this machine and from it alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_remote_address(host: str) -> bool:
    """Tell whether `host` is an address, and one that other machines may reach."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
