"""Registries of figures for Prometheus, as every process of the service makes them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics


def new_registry() -> CollectorRegistry:
    """Return a registry that holds the figures of the process itself: memory, CPU, open files."""
    # Prometheus reads the format without them, and each would be a series more.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry
