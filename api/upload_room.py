"""A bound on what all uploads in progress take on the disk together."""

from __future__ import annotations

import threading

from api.problems import Kind, Problem

RETRY_SECONDS = 30


class UploadRoom:
    """The room that the uploads of this process share; whoever finds none is refused at once.

    Nobody waits for room while holding some, so there is always somebody who gets on: those who are
    refused give back what they took.

    Parameters
    ----------
    size : int
        Most bytes of all uploads in progress, counted after unpacking.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._taken = 0

    def take(self, count: int) -> None:
        """Take room for so many bytes.

        Raises
        ------
        Problem
            When there is not so much.
        """
        with self._lock:
            if self._taken + count <= self._size:
                self._taken += count
                return
        raise Problem(
            503,
            Kind.UNAVAILABLE,
            f"the uploads in progress take all the room there is for them, {self._size:,} bytes "
            "(HALLDETECT_MAX_SPOOLED_BYTES); nothing was stored: send it again later",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )

    def give_back(self, count: int) -> None:
        """Give back what an upload took."""
        with self._lock:
            self._taken -= count
