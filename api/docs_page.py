"""The interactive documentation, from installed files: it works without any other server."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

# Relative, so that they hold under any prefix a proxy may put in front.
_ASSETS = "docs-assets"


def add_docs_page(app: FastAPI) -> None:
    """Serve Swagger UI at ``/docs``, and lead there from ``/``."""
    folder = files("fastapi_offline") / "static"
    app.mount(f"/{_ASSETS}", StaticFiles(directory=str(folder)), name=_ASSETS)

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="openapi.json",
            title=app.title,
            swagger_js_url=f"{_ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{_ASSETS}/swagger-ui.css",
            swagger_favicon_url="data:,",
            # The badge would ask a validator elsewhere.
            swagger_ui_parameters={"validatorUrl": None, "tryItOutEnabled": True},
        )

    @app.get("/", include_in_schema=False)
    def home() -> RedirectResponse:
        return RedirectResponse("docs")
