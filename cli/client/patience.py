"""Waiting where the service asks for it: one place, for every request of every command."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from cli.consoles import tell

LONGEST_WAIT = 60.0
"""Seconds that a command waits for its turn, all pauses of a request together."""

_SHORTEST_PAUSE = 1.0
_SECONDS_BEFORE_A_WORD = 5.0


def seconds_asked_for(response: httpx.Response) -> float | None:
    """Return after how many seconds a response asks to come back, or None if it does not."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def in_turn(ask: Callable[[], httpx.Response], address: str) -> httpx.Response:
    """Send a request as often as the service says that it is not its turn yet.

    What is refused with 429 was not looked at, so that any request may be sent again.

    Parameters
    ----------
    ask : callable
        Sends it.
    address : str
        Of the service, for the message.

    Returns
    -------
    Response
        The first other than a 429 that says when to come back; or that one, when the pauses
        would be longer than a minute.
    """
    left = LONGEST_WAIT
    while True:
        response = ask()
        asked_for = seconds_asked_for(response)
        if response.status_code != httpx.codes.TOO_MANY_REQUESTS or asked_for is None:
            return response
        pause = max(asked_for, _SHORTEST_PAUSE)
        if pause > left:
            return response
        response.close()
        if left == LONGEST_WAIT:
            tell(
                f"{address}: the service has too much to do and takes this request in "
                f"{pause:.0f} s; waiting for at most {LONGEST_WAIT:.0f} s"
            )
        time.sleep(pause)
        left -= pause


@contextmanager
def telling_of_silence(address: str) -> Iterator[Callable[[], None]]:
    """Say that a request is still unanswered: after some seconds, and then ever more seldom.

    Parameters
    ----------
    address : str
        Of the service, for the message.

    Yields
    ------
    callable
        To be called when something moves, from when on the seconds count anew.
    """
    lock = threading.Condition()
    moved, is_over = time.monotonic(), False

    def move() -> None:
        nonlocal moved
        moved = time.monotonic()

    def watch() -> None:
        seconds, since = _SECONDS_BEFORE_A_WORD, moved
        with lock:
            while not is_over:
                if moved != since:
                    seconds, since = _SECONDS_BEFORE_A_WORD, moved
                left = since + seconds - time.monotonic()
                if left > 0:
                    lock.wait(left)
                    continue
                tell(f"{address}: no answer for {seconds:.0f} s; still waiting")
                seconds *= 2

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield move
    finally:
        with lock:
            is_over = True
            lock.notify()
        watching.join()
