"""The Celery configuration that every process of the service shares.

Messages are wake-ups: small, JSON, and worth nothing when lost, since Postgres knows what waits.
"""

from __future__ import annotations

from celery import Celery
from kombu import Exchange
from kombu import Queue as BrokerQueue

from queues.names import Queue, Task

_TASK_ROUTES = {
    Task.EXTRACT.value: {"queue": Queue.EXTRACTION.value},
    Task.VERIFY.value: {"queue": Queue.NLI.value},
    Task.SWEEP.value: {"queue": Queue.MAINTENANCE.value},
    Task.CREATE_PARTITIONS.value: {"queue": Queue.MAINTENANCE.value},
    Task.RESCORE.value: {"queue": Queue.MAINTENANCE.value},
    Task.DELIVER.value: {"queue": Queue.MAINTENANCE.value},
}
# Well above the longest wake-up: a message that is still being worked on is never given out again.
_VISIBILITY_SECONDS = 3600


def make_app(redis_url: str, name: str) -> Celery:
    """Return a Celery app on the broker at `redis_url`.

    Parameters
    ----------
    redis_url : str
        ``redis://[:password@]host:port/number``.
    name : str
        Of the app, for its logs.
    """
    app = Celery(name, broker=redis_url, set_as_current=False)
    app.conf.update(
        # JSON only: a message can hold ids and nothing that is executed.
        task_serializer="json",
        result_serializer="json",
        event_serializer="json",
        accept_content=["json"],
        # No results: they are in Postgres, and reply keys would fill Redis.
        task_ignore_result=True,
        task_queues=[
            BrokerQueue(queue.value, Exchange(queue.value), routing_key=queue.value)
            for queue in Queue
        ],
        task_default_queue=Queue.MAINTENANCE.value,
        task_create_missing_queues=False,
        task_routes=_TASK_ROUTES,
        # One wake-up at a time, given back if the worker dies; the next stays with the broker.
        task_acks_late=True,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=True,
        # Flower sees what is sent, what runs and what ended.
        worker_send_task_events=True,
        task_send_sent_event=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_SECONDS,
            # Its commands take no time: one that stands still must not keep a worker from ending.
            "socket_timeout": 5,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 15,
            # Whoever sends a wake-up does not wait for a broker that is down.
            "max_retries": 0,
        },
        timezone="UTC",
        enable_utc=True,
    )
    return app
