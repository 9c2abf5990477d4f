"""Middleware that logs every request in one line, and clients that went away in one line too."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halldetect.logs import get_logger

_log = get_logger(__name__)


class AccessLogMiddleware:
    """Log method, path, status and duration.

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
        started = time.perf_counter()
        # Until an answer begins, only an error can end the request; it becomes a 500 further out.
        status = 500

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except ClientDisconnect:
            _log.info("client went away before its request was complete", **_request(scope))
        except Exception:
            _log_answer(scope, status, started)
            raise
        else:
            _log_answer(scope, status, started)


def _log_answer(scope: Scope, status: int, started: float) -> None:
    milliseconds = round((time.perf_counter() - started) * 1000, 1)
    _log.info("request", **_request(scope), status=status, milliseconds=milliseconds)


def _request(scope: Scope) -> dict[str, Any]:
    client = scope.get("client")
    key = scope.get("state", {}).get("api_key_id")
    return {
        "method": scope["method"],
        "path": scope["path"],
        "client": client[0] if client else None,
        **({} if key is None else {"api_key_id": key}),
    }
