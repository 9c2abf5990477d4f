"""Middleware that keeps web pages of other sites out, where no API key does.

A page whose name is made to lead to 127.0.0.1 reaches a service that listens on loopback only, and
to the browser it is the page's own. It gives itself away by the ``Host`` that the browser sends. A
page that merely sends something, and cannot read the answer, does so by its ``Origin``.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from api.keys import asks_for_keys
from api.problems import Kind, Problem
from halldetect.loopback import is_loopback
from halldetect.settings import Settings

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]*))(?::[0-9]*)?")
_ONLY_READ = {"GET", "HEAD", "OPTIONS"}


class HostCheckMiddleware:
    """Refuse requests for other hosts, and requests of other sites that change something.

    Parameters
    ----------
    app : ASGIApp
        What answers the others.
    settings : Settings
        They say whether API keys are asked for; then nothing is refused here.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not asks_for_keys(scope, self._settings):
            problem = _reason_to_refuse(scope)
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _reason_to_refuse(scope: Scope) -> Problem | None:
    hosts = _headers(scope, b"host")
    if len(hosts) != 1 or not is_loopback(_name(hosts[0])):
        return Problem(
            421,
            Kind.MISDIRECTED,
            "no API key is asked for here, so the Host header must be a name of this machine: "
            "use localhost, 127.0.0.1 or [::1]. To reach the service by another name, set "
            "HALLDETECT_API_KEYS_REQUIRED=true",
        )
    is_foreign = any(_authority(origin) != hosts[0] for origin in _headers(scope, b"origin"))
    if is_foreign and scope["method"] not in _ONLY_READ:
        return Problem(
            403,
            Kind.CROSS_SITE,
            "no API key is asked for here, so pages of other sites may change nothing: their "
            "Origin must be the Host. To let programs in that send another, set "
            "HALLDETECT_API_KEYS_REQUIRED=true",
        )
    return None


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _name(host: str) -> str:
    found = _HOST.fullmatch(host)
    return "" if found is None else found["address"] or found["name"]


def _authority(origin: str) -> str:
    return origin.partition("://")[2]
