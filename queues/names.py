"""Names of queues and tasks; the API sends tasks by name and never imports a worker."""

from __future__ import annotations

from enum import StrEnum

from db.line import Stage


class Queue(StrEnum):
    """Celery's queues, each a list in Redis."""

    EXTRACTION = "extraction"
    NLI = "nli"
    MAINTENANCE = "maintenance"


class Task(StrEnum):
    """Celery's tasks, as Flower shows them."""

    EXTRACT = "halldetect.extract"
    VERIFY = "halldetect.verify"
    SWEEP = "halldetect.sweep"
    CREATE_PARTITIONS = "halldetect.create_partitions"
    RESCORE = "halldetect.rescore"
    DELIVER = "halldetect.deliver"


def queue_of(stage: Stage) -> Queue:
    """Return the queue whose workers do a stage."""
    return Queue.EXTRACTION if stage is Stage.EXTRACTION else Queue.NLI


def task_of(stage: Stage) -> Task:
    """Return the task that wakes the workers of a stage."""
    return Task.EXTRACT if stage is Stage.EXTRACTION else Task.VERIFY
