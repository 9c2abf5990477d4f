"""Tasks whose failures say nothing of the texts that they were about."""

from __future__ import annotations

from typing import Any

from celery import Task

from halldetect.logs import get_logger
from halldetect.told_faults import told

_log = get_logger(__name__)


class TaskFailed(Exception):
    """A task ended in an error that nobody foresaw; the worker's log says where."""


class DiscreetTask(Task):  # type: ignore[misc]  # Celery has no types
    """A task that logs an unforeseen error itself, and passes on only what kind it was.

    Celery writes the error into its own log, and into an event that Flower shows.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task."""
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            _log.exception("a task failed")
            raise TaskFailed(told(error)) from None
