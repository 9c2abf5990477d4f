"""Figures that are looked up when they are asked for: totals, and how far the models are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from db.models import WorkerState
from db.workers import WorkerCounters
from worker.counters import Counters

_TOTALS = {
    "pairs": "Pairs of a claim and a span that the encoder compared.",
    "batches": "Forward passes of the encoder.",
    "tokens": "Tokens of the pairs.",
    "padded_tokens": "Tokens of the pairs, with padding.",
    "budget_tokens": "Tokens that the forward passes had room for.",
    "output_tokens": "Tokens that the extractor wrote.",
    "busy_seconds": "Time in the models, storing of claims included.",
}
# Audits are counted by stage and outcome instead.
_NOT_TOTALS = {"audits"}


class Totals(Collector):
    """What `Counters` adds up, as Prometheus knows it."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """Yield what is counted so far."""
        total = self._counters.total()
        for field in fields(WorkerCounters):
            if field.name not in _NOT_TOTALS:
                yield CounterMetricFamily(
                    f"halldetect_{field.name}",
                    _TOTALS[field.name],
                    value=getattr(total, field.name),
                )


class ModelState(Collector):
    """How far the models are: 1 for the state that is true."""

    def __init__(self, state: Callable[[], WorkerState]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield the state at this moment."""
        now = self._state()
        family = GaugeMetricFamily(
            "halldetect_worker_state", "1 for the state that the worker is in.", labels=["state"]
        )
        for state in WorkerState:
            family.add_metric([state.value], float(state is now))
        yield family
