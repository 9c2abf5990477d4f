"""Ends a process whose model does not come back from one call.

Nothing can interrupt a call into a model's library, and the thread that renews the leases goes on
beside it: without this, the audits at hand would be held for ever. Whoever runs the workers starts
the process again, and the audits count as those of a lost worker.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

from halldetect.logs import get_logger

# Far more than one forward pass, or the time between two tokens, ever takes.
HUNG_SECONDS = 1800.0
_EXIT_CODE = 70  # an internal fault

_log = get_logger(__name__)


class Watchdog:
    """Watches over calls of a model while its block runs.

    Parameters
    ----------
    model : str
        Name of the model, to be told.
    seconds : float
        How long one call may take at most, beside `HUNG_SECONDS`.
    """

    def __init__(self, model: str, seconds: float = 0.0) -> None:
        self._model = model
        self._seconds = seconds + HUNG_SECONDS
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Watchdog:
        self.start_anew()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cancel()

    def start_anew(self) -> None:
        """Note that a call came back and another one begins."""
        self._cancel()
        self._timer = threading.Timer(self._seconds, self._end_process)
        self._timer.daemon = True
        self._timer.start()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end_process(self) -> None:
        _log.critical(
            "a model does not come back: this process ends",
            model=self._model,
            seconds=self._seconds,
        )
        os._exit(_EXIT_CODE)
