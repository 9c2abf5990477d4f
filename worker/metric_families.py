"""How figures for Prometheus are declared: every combination of labels is there from the start.

A series that began with its first event would hide that event from `increase` and `rate`; so every
label has a few values that are known beforehand, and each is there with 0.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Histogram

# An audit takes seconds, or hours in the line of a large batch.
_LATENCY_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)


class Families:
    """Declares figures in a registry.

    Parameters
    ----------
    registry : CollectorRegistry
        Where they are shown.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str, **labels: type[StrEnum]) -> Counter:
        """Declare a count with the labels, and all that they can be."""
        counter = Counter(name, text, list(labels), registry=self._registry)
        _begin_with_all(counter, *labels.values())
        return counter

    def latency(self, name: str, text: str, **labels: type[StrEnum]) -> Histogram:
        """Declare times of audits with the labels, and all that they can be."""
        histogram = Histogram(
            name, text, list(labels), buckets=_LATENCY_BUCKETS, registry=self._registry
        )
        _begin_with_all(histogram, *labels.values())
        return histogram


def _begin_with_all(metric: Counter | Histogram, *labels: type[StrEnum]) -> None:
    """Make every combination of labels be there from the start."""
    if labels:
        for values in product(*labels):
            metric.labels(*(value.value for value in values))
