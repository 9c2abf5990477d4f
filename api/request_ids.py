"""One id for each request: in its answer, and in every line that is logged because of it."""

from __future__ import annotations

import re
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from api.problems import REQUEST_ID_HEADER

# A client's own id goes into logs as it is, so it may hold nothing that a log or a shell could
# take for something else.
_USABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class RequestIdMiddleware:
    """Give each request an id, its client's own if it sent one that can be used.

    Parameters
    ----------
    app : ASGIApp
        What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _id_of(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        with bound_contextvars(request_id=request_id):
            await self._app(scope, receive, send_with_id)


def _id_of(headers: Headers) -> str:
    sent = headers.getlist(REQUEST_ID_HEADER)
    if len(sent) == 1 and _USABLE.fullmatch(sent[0]):
        return sent[0]
    return uuid4().hex
