"""Figures of the whole service for Prometheus, from the database: every process tells the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from api.dependencies import ServiceOf
from api.keys import Administrator
from db.engine import read_one_snapshot
from db.metrics import ServiceMetrics, service_metrics
from db.models import WorkerState
from db.workers import WorkerCounters
from queues.names import Queue

router = APIRouter()

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
    with service.transaction() as session:
        read_one_snapshot(session)
        figures = service_metrics(session)
    registry = CollectorRegistry()
    registry.register(_Figures(figures))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


class _Figures(Collector):
    """The figures as Prometheus knows them."""

    def __init__(self, figures: ServiceMetrics) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        yield from self._audits()
        yield from self._lines()
        yield self._workers()
        yield from self._worker_counters()

    def _audits(self) -> Iterator[Metric]:
        audits = GaugeMetricFamily(
            "halldetect_audits", "Audits that are stored, by status.", labels=["status"]
        )
        for status, count in self._figures.audits.items():
            audits.add_metric([status.value], count)
        yield audits
        yield GaugeMetricFamily(
            "halldetect_audit_faults",
            "Lost workers and errors of their own that the stored audits met.",
            value=self._figures.faults,
        )

    def _lines(self) -> Iterator[Metric]:
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
        for depth in self._figures.depths:
            waiting.add_metric([depth.stage.value], depth.waiting)
            running.add_metric([depth.stage.value], depth.running)
            oldest.add_metric([depth.stage.value], depth.oldest_seconds or 0.0)
        yield from (waiting, running, oldest)

    def _workers(self) -> Metric:
        counts = Counter(
            (queue, worker.state) for worker in self._figures.workers for queue in worker.queues
        )
        workers = GaugeMetricFamily(
            "halldetect_workers", "Workers that reported lately.", labels=["queue", "state"]
        )
        for queue in Queue:
            for state in WorkerState:
                workers.add_metric([queue.value, state.value], counts[queue.value, state])
        return workers

    def _worker_counters(self) -> Iterator[Metric]:
        for field in fields(WorkerCounters):
            family = CounterMetricFamily(
                f"halldetect_worker_{field.name}", _COUNTERS[field.name], labels=["worker"]
            )
            for worker in self._figures.workers:
                family.add_metric([worker.name], getattr(worker.counters, field.name))
            yield family
