"""Run the API as a process of its own: ``python -m api``."""

from __future__ import annotations

import sys

import uvicorn

from api.app import create_app
from api.connections import allow_files, patient_protocol
from halldetect.errors import HallDetectError
from halldetect.logs import configure_logging
from halldetect.settings import load_settings

_GRACE_SECONDS = 5


def main() -> int:
    """Serve until a signal ends it."""
    try:
        settings = load_settings()
        app = create_app(settings)
    except HallDetectError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    configure_logging()
    allow_files()
    uvicorn.run(
        app,
        host=settings.api_host,
        port=settings.api_port,
        http=patient_protocol(settings.stalled_client_seconds),
        ws="none",
        # Ours alone: one JSON object a line, requests included.
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
