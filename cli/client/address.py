"""Where the service is: the address that is set, or that of the stack that runs here."""

from __future__ import annotations

from urllib.parse import urlsplit

from cli.client.errors import ServiceError
from halldetect.errors import InputError
from halldetect.settings import Settings


def api_address(settings: Settings) -> str:
    """Return the address of the API, without a slash at its end.

    Raises
    ------
    InputError
        The address that is set is none.
    ServiceError
        None is set and no stack runs here.
    """
    if settings.api_url is not None:
        return _checked(settings.api_url)
    from cli.stack.run_file import read_running_stack

    running = read_running_stack(settings.home.expanduser().absolute())
    if running is None:
        raise ServiceError(
            "no service is running: start one with `halldetect up`, or set HALLDETECT_API_URL"
        )
    return _checked(running.api_url)


def _checked(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InputError(
            f"HALLDETECT_API_URL: {address!r} is no address; give one such as http://127.0.0.1:8000"
        )
    return address.rstrip("/")
