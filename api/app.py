"""The application. ``python -m api`` serves it; ``create_app`` is a factory for any ASGI server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI
from starlette.middleware import Middleware

from api import openapi
from api.access_log import AccessLogMiddleware
from api.body_limit import BodyLimit, BodyLimitMiddleware
from api.dependencies import THREADS, Service, refuse_ambiguous_query
from api.docs_page import add_docs_page
from api.host_check import HostCheckMiddleware
from api.keys import authenticate
from api.problem_handlers import add_problem_handlers
from api.request_ids import RequestIdMiddleware
from api.request_metrics import RequestMetrics
from api.routes import (
    audits,
    batches,
    health,
    metrics,
    policies,
    retries,
    reviews,
    scorings,
    webhooks,
)
from halldetect.settings import Settings, load_settings


def create_app(settings: Settings | None = None) -> FastAPI:
    """Build the application.

    Parameters
    ----------
    settings : Settings, optional
        None reads the environment.

    Raises
    ------
    InputError
        When a setting cannot be used, the address of a server is missing, or everybody would be
        let in from other machines.
    """
    settings = settings or load_settings()
    settings.asks_for_api_keys()  # which refuses to let everybody in
    service = Service.of(settings)
    app = FastAPI(
        title="HallDetect",
        version=version("halldetect"),
        description=openapi.DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        middleware=_middleware(settings, service.metrics),
    )
    app.state.service = service
    add_problem_handlers(app)
    v1 = APIRouter(
        prefix="/v1", dependencies=[Depends(authenticate), Depends(refuse_ambiguous_query)]
    )
    for routes in (audits, batches, retries, policies, reviews, scorings, webhooks):
        v1.include_router(routes.router)
        service.metrics.add_routes("/v1", routes.router)
    app.include_router(v1)
    app.include_router(health.router)
    app.include_router(metrics.router)
    add_docs_page(app)
    for router in (health.router, metrics.router, app.router):
        service.metrics.add_routes("", router)
    openapi.describe(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    try:
        yield
    finally:
        app.state.service.close()


def _middleware(settings: Settings, metrics: RequestMetrics) -> list[Middleware]:
    bodies = BodyLimit(settings.max_body_bytes, "HALLDETECT_MAX_BODY_BYTES")
    uploads = BodyLimit(settings.max_upload_bytes, "HALLDETECT_MAX_UPLOAD_BYTES")
    return [
        Middleware(RequestIdMiddleware),
        Middleware(AccessLogMiddleware, metrics=metrics),
        Middleware(
            BodyLimitMiddleware,
            default=bodies,
            by_path={"/v1/batches": uploads},
            stall_seconds=settings.stalled_client_seconds,
        ),
        Middleware(HostCheckMiddleware, settings=settings),
    ]
