"""Figures for Prometheus: those of this process, and those of the whole service.

The service's are read from the database, so that every process tells the same; without a database
there are those of the process alone, since an outage is when one wants to see them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields

from fastapi import APIRouter, Response
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from api.dependencies import Service, ServiceOf
from api.keys import Administrator
from db.engine import DatabaseUnavailable, read_one_snapshot
from db.metrics import ServiceMetrics, service_metrics
from db.models import DeliveryState, WorkerState
from db.workers import LiveWorker, WorkerCounters
from halldetect.logs import get_logger
from queues.names import Queue

router = APIRouter()
_log = get_logger(__name__)

_COUNTERS = {
    "audits": "Audits of which the worker finished its stage.",
    "pairs": "Pairs of a claim and a span that the encoder compared.",
    "batches": "Forward passes of the encoder.",
    "tokens": "Tokens of the pairs.",
    "padded_tokens": "Tokens of the pairs, with padding.",
    "budget_tokens": "Tokens that the forward passes had room for.",
    "output_tokens": "Tokens that the extractor wrote.",
    "busy_seconds": "Time in the models.",
}


@router.get("/metrics", include_in_schema=False)  # not for callers of the API
def metrics(_: Administrator, service: ServiceOf) -> Response:
    """Return all figures in Prometheus's text format."""
    own = generate_latest(service.metrics.registry)
    registry = CollectorRegistry()
    registry.register(_Figures(_figures_of(service)))
    return Response(own + generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _figures_of(service: Service) -> ServiceMetrics | None:
    try:
        with service.transaction() as session:
            read_one_snapshot(session)
            return service_metrics(session)
    except DatabaseUnavailable as error:
        _log.warning("the service's figures cannot be read", error=str(error))
        return None


class _Figures(Collector):
    """The service's figures as Prometheus knows them; none without a database."""

    def __init__(self, figures: ServiceMetrics | None) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        yield GaugeMetricFamily(
            "halldetect_database_up",
            "1 when the database answered; without it there are no figures of the service.",
            value=float(figures is not None),
        )
        if figures is not None:
            yield from _audits(figures)
            yield from _lines(figures)
            yield from _deliveries(figures)
            yield _workers(figures)
            yield from _worker_counters(figures)


def _audits(figures: ServiceMetrics) -> Iterator[Metric]:
    audits = GaugeMetricFamily(
        "halldetect_audits", "Audits that are stored, by status.", labels=["status"]
    )
    for status, count in figures.audits.items():
        audits.add_metric([status.value], count)
    yield audits
    yield GaugeMetricFamily(
        "halldetect_audit_faults",
        "Lost workers and errors of their own that the stored audits met.",
        value=figures.faults,
    )


def _lines(figures: ServiceMetrics) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "halldetect_waiting_audits", "Audits that no worker holds.", labels=["stage"]
    )
    running = GaugeMetricFamily(
        "halldetect_running_audits", "Audits that a worker holds.", labels=["stage"]
    )
    oldest = GaugeMetricFamily(
        "halldetect_oldest_waiting_seconds",
        "Since the first audit that waits was submitted; 0 when none waits.",
        labels=["stage"],
    )
    for depth in figures.depths:
        waiting.add_metric([depth.stage.value], depth.waiting)
        running.add_metric([depth.stage.value], depth.running)
        oldest.add_metric([depth.stage.value], depth.oldest_seconds or 0.0)
    yield from (waiting, running, oldest)


def _deliveries(figures: ServiceMetrics) -> Iterator[Metric]:
    deliveries = GaugeMetricFamily(
        "halldetect_webhook_deliveries",
        "Messages to webhooks that wait for their batch to finish, and that are due since it has.",
        labels=["state"],
    )
    deliveries.add_metric([DeliveryState.WAITING.value], figures.deliveries.waiting)
    deliveries.add_metric([DeliveryState.DUE.value], figures.deliveries.due)
    yield deliveries
    yield GaugeMetricFamily(
        "halldetect_oldest_due_webhook_seconds",
        "Since the first message that no receiver has taken yet became due; 0 when none is.",
        value=figures.deliveries.oldest_due_seconds,
    )


def _workers(figures: ServiceMetrics) -> Metric:
    counts = Counter((queue, worker.state) for worker in figures.workers for queue in worker.queues)
    workers = GaugeMetricFamily(
        "halldetect_workers", "Workers that reported lately.", labels=["queue", "state"]
    )
    for queue in Queue:
        for state in WorkerState:
            workers.add_metric([queue.value, state.value], counts[queue.value, state])
    return workers


def _worker_counters(figures: ServiceMetrics) -> Iterator[Metric]:
    for field in fields(WorkerCounters):
        family = CounterMetricFamily(
            f"halldetect_worker_{field.name}", _COUNTERS[field.name], labels=["worker"]
        )
        for node, workers in _by_node(figures.workers).items():
            total = sum(getattr(worker.counters, field.name) for worker in workers)
            family.add_metric([node], total)
        yield family


def _by_node(workers: Iterable[LiveWorker]) -> dict[str, list[LiveWorker]]:
    """Return workers by Celery's names of them, under which their successors come too.

    The names of processes have a part that is new each time, and would be ever more series.
    """
    nodes: dict[str, list[LiveWorker]] = {}
    for worker in workers:
        nodes.setdefault(worker.name.rpartition("/")[0] or worker.name, []).append(worker)
    return nodes
