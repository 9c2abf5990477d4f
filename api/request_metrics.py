"""What one API process tells Prometheus of its requests: how many, how they ended, how long."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.routing import Route, Router
from starlette.types import Scope

from api.problems import Kind
from queues.registry import new_registry

DISCONNECTED = "disconnected"
_UNKNOWN_ROUTE = "none"
_PARAMETER = re.compile(r"\{\w+\}")
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
# Uploads and streams of results take minutes; all else takes milliseconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class RequestMetrics:
    """The figures of one process, with labels that no client can add to.

    A path counts under its template, and a path or method that there is not under one label.
    """

    def __init__(self) -> None:
        self.registry: CollectorRegistry = new_registry()
        self._requests = Counter(
            "halldetect_http_requests",
            "Requests by how they were answered; `disconnected`: the client was gone before.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "halldetect_http_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._problems = Counter(
            "halldetect_http_problems",
            "Problem documents that were answered, by kind; `too-much-waiting` is back-pressure.",
            ["kind"],
            registry=self.registry,
        )
        for kind in Kind:
            self._problems.labels(kind.value)
        self._routes: dict[str, re.Pattern[str]] = {}

    def add_routes(self, prefix: str, router: Router) -> None:
        """Count requests for the routes of a router under their own templates."""
        for route in router.routes:
            if isinstance(route, Route):
                template = prefix + route.path
                parts = map(re.escape, _PARAMETER.split(template))
                self._routes[template] = re.compile("[^/]+".join(parts))

    def answered(self, scope: Scope, status: int | None, seconds: float) -> None:
        """Note a request; `status` is None when the client was gone before an answer."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = self._template(scope["path"])
        text = DISCONNECTED if status is None else str(status)
        self._requests.labels(method, route, text).inc()
        self._seconds.labels(method, route).observe(seconds)

    def problem(self, kind: Kind) -> None:
        """Note a problem document."""
        self._problems.labels(kind.value).inc()

    def _template(self, path: str) -> str:
        if path in self._routes:
            return path
        matching = (name for name, route in self._routes.items() if route.fullmatch(path))
        return next(matching, _UNKNOWN_ROUTE)
