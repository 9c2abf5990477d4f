"""What can go wrong between a client command and the service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halldetect.errors import InputError, UnavailableError


class ServiceError(UnavailableError):
    """The service cannot be reached, is not ready, or failed; the message says which and where."""


class ServiceUnavailable(ServiceError):
    """The service does not answer now and may again: the same request is worth another try.

    Parameters
    ----------
    message : str
        What went wrong, and where.
    retry_after : float
        Seconds that the service asks to be left alone; 0 when it says nothing.
    nothing_done : bool
        Whether it is certain that the request had no effect: it never arrived, or the service
        says so.
    """

    def __init__(
        self, message: str, retry_after: float = 0.0, *, nothing_done: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.nothing_done = nothing_done


@dataclass(frozen=True, slots=True)
class LineFault:
    """What the service found wrong with one line of an upload.

    Parameters
    ----------
    line : int
        Counted from 1, blank lines included.
    message : str
        What is wrong, in the service's words.
    """

    line: int
    message: str


class BatchRefused(InputError):
    """The service stored nothing of an upload, because lines of it cannot be used.

    Parameters
    ----------
    message : str
        The service's own summary.
    faults : sequence of LineFault
        The first lines that cannot be used.
    total_faults : int
        Number of all of them.
    """

    def __init__(self, message: str, faults: Sequence[LineFault], total_faults: int) -> None:
        super().__init__(message)
        self.faults = tuple(faults)
        self.total_faults = total_faults
