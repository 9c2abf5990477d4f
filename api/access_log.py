"""Middleware that logs and counts every request, clients that went away included."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Kind
from api.request_metrics import RequestMetrics
from halldetect.logs import get_logger

_log = get_logger(__name__)


class AccessLogMiddleware:
    """Log method, path, status and duration in one line, and count them.

    Parameters
    ----------
    app : ASGIApp
        What answers.
    metrics : RequestMetrics
        Where requests are counted.
    """

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

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
            self._metrics.answered(scope, None, time.perf_counter() - started)
        except Exception:
            scope.setdefault("state", {})["problem"] = Kind.INTERNAL  # answered further out
            self._note(scope, status, started)
            raise
        else:
            self._note(scope, status, started)

    def _note(self, scope: Scope, status: int, started: float) -> None:
        seconds = time.perf_counter() - started
        _log.info(
            "request", **_request(scope), status=status, milliseconds=round(seconds * 1000, 1)
        )
        self._metrics.answered(scope, status, seconds)
        problem = scope.get("state", {}).get("problem")
        if problem is not None:
            self._metrics.problem(problem)


def _request(scope: Scope) -> dict[str, Any]:
    client = scope.get("client")
    state = scope.get("state", {})
    known = {name: state.get(name) for name in ("api_key_id", "problem")}
    return {
        "method": scope["method"],
        "path": scope["path"],
        "client": client[0] if client else None,
        **{name: value for name, value in known.items() if value is not None},
    }
