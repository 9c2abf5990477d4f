"""Following a batch to its end, through outages of the service, for as long as somebody watches."""

from __future__ import annotations

import time
from typing import Any

from cli.client.batch_state import parse_batch_state
from cli.client.batch_tables import progress_line
from cli.client.errors import ServiceUnavailable
from cli.client.follow_display import follow_display
from cli.client.service import Service
from cli.client.throughput import Throughput
from cli.consoles import tell

_SECONDS_BETWEEN_LOOKS = 0.5
# Looking at a large batch costs the service a count of its rows, and it has other things to do.
_MOST_OF_THE_TIME = 0.05
_LONGEST_SECONDS_BETWEEN_LOOKS = 5.0


def follow(service: Service, batch_id: int, news: str | None = None) -> dict[str, Any]:
    """Show how a batch goes on until nothing of it waits; return its last description.

    Parameters
    ----------
    service : Service
        Has the batch.
    batch_id : int
        The batch.
    news : str, optional
        To be told first: whoever interrupts from then on hears that the batch goes on.

    Raises
    ------
    ServiceUnavailable
        The service has not answered for too long, which does not touch the batch.
    KeyboardInterrupt
        With a message that says that the batch goes on, and how to follow it again.
    """
    throughput = Throughput()
    try:
        if news is not None:
            tell(news)
        with follow_display() as display, service.saying_to(display.say):
            while True:
                document, spent = _look(service, batch_id)
                state = parse_batch_state(document)
                throughput.note(state.finished)
                display.show(progress_line(state, throughput), state.fraction)
                if state.is_over:
                    return document
                pause = min(spent / _MOST_OF_THE_TIME, _LONGEST_SECONDS_BETWEEN_LOOKS)
                time.sleep(max(pause, _SECONDS_BETWEEN_LOOKS))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped following; batch {batch_id} goes on, and {_how_to_go_on(batch_id)}"
        ) from None
    except ServiceUnavailable as error:
        raise ServiceUnavailable(
            f"{error}; batch {batch_id} is stored, and {_how_to_go_on(batch_id)}"
        ) from None


def _look(service: Service, batch_id: int) -> tuple[dict[str, Any], float]:
    """Return what the service says of a batch, and the seconds that this one request took."""
    started = time.monotonic()
    document = service.batch(batch_id)
    return document, time.monotonic() - started


def _how_to_go_on(batch_id: int) -> str:
    return (
        f"`halldetect status {batch_id} --wait` follows it again, "
        f"`halldetect cancel {batch_id}` stops it"
    )
