"""Sending a batch until the service has it, once, however often the connection breaks."""

from __future__ import annotations

import uuid
from typing import Any

from cli.client.errors import ServiceUnavailable
from cli.client.patience import outlast
from cli.client.service import Service
from cli.client.upload import Upload
from cli.progress_display import ProgressDisplay, progress_display

_MEGABYTE = 1_000_000


def send_batch(
    service: Service, upload: Upload, *, policy: str | None, priority: int | None
) -> dict[str, Any]:
    """Upload one batch, showing how far it is, and return the service's description of it.

    All tries carry one key made up here, by which the service tells a repeated try from a second
    submission of the same file.

    Raises
    ------
    BatchRefused, InputError
        The service does not take it.
    ServiceUnavailable
        It could not be sent for a minute.
    """
    key = str(uuid.uuid4())
    may_be_stored = False

    def send() -> dict[str, Any]:
        nonlocal may_be_stored
        try:
            return service.upload_batch(
                upload.compressed(lambda read: _show(display, read, upload.size)),
                size=upload.size,
                idempotency_key=key,
                policy=policy,
                priority=priority,
            )
        except ServiceUnavailable as error:
            may_be_stored |= not error.nothing_done
            raise

    with progress_display() as display, service.saying_to(display.say):
        try:
            return outlast(send, display.say, is_repeatable=True)
        except ServiceUnavailable as error:
            if not may_be_stored:
                raise
            raise ServiceUnavailable(
                f"{error}; it may have taken the batch before it went away: GET /v1/batches lists "
                "it, look there before you submit the file again"
            ) from None


def _show(display: ProgressDisplay, read: int, size: int) -> None:
    if read < size:
        megabytes = f"{read / _MEGABYTE:,.1f} of {size / _MEGABYTE:,.1f} MB"
        display.show(f"uploading: {megabytes}", read / size)
    else:
        display.show("uploaded; the service is checking every line", None)
