"""Ports on loopback: which are free, and which to take instead of one that is not."""

from __future__ import annotations

import socket
from collections.abc import Collection

from cli.stack.errors import StackError

LOOPBACK = "127.0.0.1"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Tell whether a server could listen on `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections of a server that has ended do not make a port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str = LOOPBACK) -> int:
    """Return a port that nobody listens on.

    Raises
    ------
    StackError
        Nothing can listen on `host`, whatever the port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise StackError(
                f"nothing can listen on {host} ({error.strerror}): set HALLDETECT_API_HOST and "
                "HALLDETECT_METRICS_HOST to addresses of this machine"
            ) from None
        port: int = probe.getsockname()[1]
    return port


def port_or_another(wanted: int, host: str = LOOPBACK, except_for: Collection[int] = ()) -> int:
    """Return `wanted` if it is free, else any port that is; never one of `except_for`."""
    port = wanted
    while port in except_for or not is_free(port, host):
        port = free_port(host)
    return port
