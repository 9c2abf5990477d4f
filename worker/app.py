"""The Celery app of the workers: ``celery -A worker.app worker -Q nli`` is all that a box needs.

Importing it loads no model and opens no connection; a worker loads what its queues need once it
is ready.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

from celery import Task as CeleryTask
from celery import signals
from celery.concurrency import get_implementation
from celery.concurrency.thread import TaskPool
from celery.schedules import crontab
from structlog.contextvars import bound_contextvars

from db.engine import DatabaseUnavailable
from db.line import Stage
from halldetect.errors import InputError
from halldetect.logs import configure_logging, get_logger
from halldetect.settings import Settings, load_settings
from queues.celery_app import make_app
from queues.names import Queue, Task
from queues.wake_ups import WakeUps
from worker.discreet_task import DiscreetTask
from worker.process import WorkerProcess

# Celery's two lines a task would bury what the tasks themselves say.
_TALKATIVE_LOGGERS = ("celery.worker.strategy", "celery.app.trace")

_log = get_logger(__name__)


def _address(settings: Settings, field: str) -> str:
    secret = getattr(settings, field)
    if secret is None:
        raise InputError(
            f"{field.upper()} is not set: a worker needs the addresses of Postgres and Redis "
            "(`halldetect up` starts workers with those of the embedded stack)"
        )
    return str(secret.get_secret_value())


settings = load_settings()
_database_url = _address(settings, "database_url")
app = make_app(_address(settings, "redis_url"), "halldetect.worker")
app.Task = DiscreetTask
app.conf.update(
    worker_pool="threads",
    worker_concurrency=1,
    beat_scheduler="worker.steady_beat:SteadyScheduler",
    beat_schedule={
        "sweep": {
            "task": Task.SWEEP.value,
            "schedule": settings.sweep_seconds,
        },
        "create partitions": {
            "task": Task.CREATE_PARTITIONS.value,
            "schedule": crontab(hour=0, minute=30),
        },
    },
)


class _Running:
    """The process that this module's tasks work in; there is one once the worker is ready."""

    process: WorkerProcess | None = None


def _process() -> WorkerProcess:
    if _Running.process is None:
        raise RuntimeError("tasks run only in a worker that was started with `celery worker`")
    return _Running.process


@app.task(name=Task.EXTRACT.value, bind=True)
def extract(
    task: CeleryTask,
    *,
    reason: str,
    batch_id: int | None = None,
    audit_id: int | None = None,
) -> dict[str, Any]:
    """Extract claims for a while; the ids say whose work was at the head of the line."""
    return _answer_wake_up(task, Stage.EXTRACTION, reason, batch_id, audit_id)


@app.task(name=Task.VERIFY.value, bind=True)
def verify(
    task: CeleryTask,
    *,
    reason: str,
    batch_id: int | None = None,
    audit_id: int | None = None,
) -> dict[str, Any]:
    """Verify claims for a while; the ids say whose work was at the head of the line."""
    return _answer_wake_up(task, Stage.VERIFICATION, reason, batch_id, audit_id)


def _answer_wake_up(
    task: CeleryTask, stage: Stage, reason: str, batch_id: int | None, audit_id: int | None
) -> dict[str, Any]:
    with bound_contextvars(task_id=task.request.id, stage=stage.value):
        _log.info("woken", reason=reason, batch_id=batch_id, audit_id=audit_id)
        summary = _process().run(stage)
        shown = {**asdict(summary), "ended": summary.ended.value}
        _log.info("run ended", **shown)
    return shown


@app.task(name=Task.SWEEP.value, bind=True)
def sweep(task: CeleryTask) -> None:
    """Bring back what was lost, and wake workers for what waits."""
    with bound_contextvars(task_id=task.request.id):
        try:
            _process().sweep()
        except DatabaseUnavailable as error:
            _log.warning("nothing was swept", error=str(error))


@app.task(name=Task.RESCORE.value, bind=True)
def rescore(task: CeleryTask, *, reason: str, rescoring_id: int) -> dict[str, Any]:
    """Score stored audits under another policy for a while."""
    with bound_contextvars(task_id=task.request.id):
        _log.info("woken", reason=reason, rescoring_id=rescoring_id)
        try:
            ended = _process().rescore(rescoring_id)
        except DatabaseUnavailable as error:
            _log.warning("the rescoring is interrupted", error=str(error))
            return {"ended": "the database is unavailable"}
    return {"ended": ended.value}


@app.task(name=Task.DELIVER.value, bind=True)
def deliver(task: CeleryTask, *, reason: str) -> dict[str, Any]:
    """Tell the receivers of webhooks which batches are finished, for a while."""
    with bound_contextvars(task_id=task.request.id):
        _log.info("woken", reason=reason)
        try:
            ended = _process().deliver()
        except DatabaseUnavailable as error:
            _log.warning("deliveries are interrupted", error=str(error))
            return {"ended": "the database is unavailable"}
    return {"ended": ended.value}


@app.task(name=Task.CREATE_PARTITIONS.value)
def create_partitions() -> None:
    """Make the partitions of the coming months."""
    try:
        _process().create_partitions()
    except DatabaseUnavailable as error:  # there is time: those of two months are there already
        _log.warning("no partition was created", error=str(error))


@signals.setup_logging.connect
def _write_structured_logs(loglevel: int | str = logging.INFO, **_: Any) -> None:
    configure_logging(logging.getLevelName(loglevel) if isinstance(loglevel, str) else loglevel)
    for name in _TALKATIVE_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


@signals.worker_init.connect
def _insist_on_threads(sender: Any, **_: Any) -> None:
    if not issubclass(get_implementation(sender.pool_cls), TaskPool):
        raise SystemExit(
            "workers run with --pool=threads: a model must not be loaded before a fork, and other "
            "pools stop reporting while a model runs"
        )


@signals.worker_ready.connect
def _start(sender: Any, **_: Any) -> None:
    queues = [str(queue) for queue in app.amqp.queues.consume_from]
    model_queues = [queue for queue in queues if queue != Queue.MAINTENANCE]

    def take_work(is_able: bool) -> None:
        # A worker that cannot work would take wake-ups away from those that can.
        change = sender.add_task_queue if is_able else sender.cancel_task_queue
        for queue in model_queues:
            sender.call_soon(change, queue)

    process = WorkerProcess(
        settings,
        database_url=_database_url,
        wake_ups=WakeUps(app),
        node=sender.hostname,
        queues=queues,
        on_able=take_work,
    )
    try:
        process.start()
    except InputError as error:
        raise SystemExit(str(error)) from None
    _Running.process = process
    if Queue.MAINTENANCE in queues:
        create_partitions.delay()


@signals.worker_shutting_down.connect
def _ask_to_stop(**_: Any) -> None:
    if _Running.process is not None:
        _Running.process.ask_to_stop()


@signals.worker_shutdown.connect
def _stop(**_: Any) -> None:
    if _Running.process is not None:
        _Running.process.stop()
        _Running.process = None
