"""Sending a batch until the service has it, once, however often the connection breaks."""

from __future__ import annotations

import time
import uuid
from typing import Any

from cli.client.errors import ServiceUnavailable
from cli.client.patience import LONGEST_WAIT
from cli.client.service import Service
from cli.client.upload import Upload
from cli.progress_display import ProgressDisplay, progress_display

# Longer than an API that died takes until it answers again.
_SECONDS_BEFORE_TRIES = (1.0, 2.0, 4.0, 8.0)
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
        It could not be sent several times in a row.
    """
    key = str(uuid.uuid4())
    pauses = iter(_SECONDS_BEFORE_TRIES)
    with progress_display() as display:
        while True:
            try:
                return service.upload_batch(
                    upload.compressed(lambda read: _show(display, read, upload.size)),
                    size=upload.size,
                    idempotency_key=key,
                    policy=policy,
                    priority=priority,
                )
            except ServiceUnavailable as error:
                pause = next(pauses, None)
                if pause is None:
                    raise ServiceUnavailable(
                        f"{error}; if it took the batch before it went away, GET /v1/batches "
                        "lists it: look there before you submit the file again"
                    ) from error
                pause = max(pause, min(error.retry_after, LONGEST_WAIT))
                display.say(f"{error}; trying again in {pause:.0f} s")
                time.sleep(pause)


def _show(display: ProgressDisplay, read: int, size: int) -> None:
    if read < size:
        megabytes = f"{read / _MEGABYTE:,.1f} of {size / _MEGABYTE:,.1f} MB"
        display.show(f"uploading: {megabytes}", read / size)
    else:
        display.show("uploaded; the service is checking every line", None)
