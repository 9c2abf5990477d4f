"""The workers' app for a process under libfaketime: ``celery -A clocked_app``.

Python sleeps until a time of the monotonic clock, which libfaketime takes for one of the clock that
it changes, and refuses; so this process sleeps by waiting.
"""

from __future__ import annotations

import threading
import time

from worker.app import app

time.sleep = lambda seconds: threading.Event().wait(seconds) and None

__all__ = ["app"]
