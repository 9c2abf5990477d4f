"""Waiting for a service that does not answer now: one place, for every request of every command."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import httpx

from cli.client.errors import ServiceUnavailable

LONGEST_WAIT = 60.0
"""Seconds that a command waits for an answer to one request: a restart takes less."""

SHORTEST_PAUSE = 1.0
"""Seconds between two tries at least."""

# What takes long by itself, such as a large upload, is not given up after a single repetition.
_LEAST_TRIES = 3
_SECONDS_BEFORE_A_WORD = 5.0

_Answer = TypeVar("_Answer")


def seconds_asked_for(response: httpx.Response) -> float | None:
    """Return after how many seconds a response asks to come back, or None if it does not."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def outlast(
    ask: Callable[[], _Answer], say: Callable[[str], None], *, is_repeatable: bool
) -> _Answer:
    """Ask again, for about a minute, while the service does not answer.

    Parameters
    ----------
    ask : callable
        Sends the request and returns the answer, or raises `ServiceUnavailable`.
    say : callable
        Told once for each reason why there is a pause, and how long this may go on.
    is_repeatable : bool
        Whether a second time does no harm. Whatever else is sent again only when it is certain
        that nothing was done.

    Raises
    ------
    ServiceUnavailable
        The last one: when the minute is over, when the service asks for a longer pause, or when
        nobody knows what was done.
    """
    tries, give_up_at = 0, 0.0
    told: set[str] = set()
    while True:
        try:
            return ask()
        except ServiceUnavailable as error:
            if not (is_repeatable or error.nothing_done):
                raise _unknown_outcome(error) from None
            tries += 1
            now = time.monotonic()
            pause = max(error.retry_after, SHORTEST_PAUSE)
            if tries == 1:
                give_up_at = now + LONGEST_WAIT
            if pause > LONGEST_WAIT or (tries >= _LEAST_TRIES and now + pause > give_up_at):
                raise
            if str(error) not in told:
                left = max(pause, give_up_at - now)
                say(f"{error}; trying again in {pause:.0f} s, for at most {left:.0f} s")
                told.add(str(error))
        time.sleep(pause)


def _unknown_outcome(error: ServiceUnavailable) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"{error}; whether it did what was asked is not known: look before you ask again",
        error.retry_after,
    )


@contextmanager
def telling_of_silence(address: str, say: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Say that a request is still unanswered: after some seconds, and then ever more seldom.

    Parameters
    ----------
    address : str
        Of the service, for the message.
    say : callable
        Told so.

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
                say(f"{address}: no answer for {seconds:.0f} s; still waiting")
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
