"""Addresses of an embedded stack that `halldetect env` printed, and that a shell has kept since.

They are for other programs. Our own commands ask the stack itself: it may have been started anew
with other ports and passwords, and a stack in another home would run on the first one's servers.
"""

from __future__ import annotations

import os

_VARIABLES = ("DATABASE_URL", "REDIS_URL")


def copy_of(variable: str) -> str:
    """Return the variable that tells a printed address from one that somebody has set."""
    return f"STACK_{variable}"


def forget_printed_addresses() -> list[str]:
    """Take printed addresses out of our own environment; return the variables that held them."""
    printed = [
        variable
        for variable in _VARIABLES
        if variable in os.environ and os.environ[variable] == os.environ.get(copy_of(variable))
    ]
    for variable in printed:
        del os.environ[variable]
    return printed
