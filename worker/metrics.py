"""What one worker process tells Prometheus of itself: counts and times, and never a text or an id.

Every label has a few values that are known beforehand, and each is there from the start with 0: a
series that begins with its first event would hide that event from `increase` and `rate`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from enum import StrEnum
from itertools import product

from prometheus_client import Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from db.claiming import ClaimedAudit
from db.leases import Recovered
from db.line import Stage
from db.models import WorkerState
from db.workers import WorkerCounters
from halldetect.claims.model import ClaimOrigin, Decomposition, FinishReason, RejectionReason
from queues.registry import new_registry
from worker.counters import Counters
from worker.ended import Ended
from worker.webhook_answers import AttemptOutcome

# An audit takes seconds, or hours in the line of a large batch.
_LATENCY_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)

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


class StageOutcome(StrEnum):
    """How an audit left a stage."""

    COMPLETED = "completed"
    FAILED = "failed"
    POISON = "poison"


class RetryCause(StrEnum):
    """What an attempt is charged for."""

    ERROR = "error"
    WORKER_LOST = "worker_lost"


class GivenUp(StrEnum):
    """Why a message to a webhook is sent no more."""

    ATTEMPTS = "attempts"
    GONE = "gone"
    KEY_REVOKED = "key_revoked"


class WorkerMetrics:
    """The figures of one process, and the registry that a server shows.

    Parameters
    ----------
    counters : Counters
        What the process also reports to the database.
    """

    def __init__(self, counters: Counters) -> None:
        self.registry = new_registry()
        self.registry.register(_Totals(counters))
        self._finished = self._counter(
            "halldetect_audits_finished",
            "Audits that left a stage: completed, failed by themselves, or poison, which failed "
            "because workers were lost over them.",
            stage=Stage,
            outcome=StageOutcome,
        )
        self._retries = self._counter(
            "halldetect_retries",
            "Attempts that were charged to an audit, which waits for another one.",
            cause=RetryCause,
        )
        self._claims = self._counter(
            "halldetect_claims", "Claims that were extracted.", origin=ClaimOrigin
        )
        self._rejected = self._counter(
            "halldetect_rejected_claims",
            "Lines of the extractor that the response does not say.",
            reason=RejectionReason,
        )
        self._generations = self._counter(
            "halldetect_generations",
            "Answers of the extractor, by why they end.",
            finish=FinishReason,
        )
        self._extractor_seconds = self._counter(
            "halldetect_extractor_seconds", "Time in the extractor's own model."
        )
        self._lost_leases = self._counter(
            "halldetect_lost_leases",
            "Audits that were taken over or cancelled while this worker held them.",
        )
        self._expired_leases = self._counter(
            "halldetect_expired_leases",
            "Leases of lost workers that the sweeper found, charged or not.",
        )
        self._outages = self._counter(
            "halldetect_database_outages", "Times that the database went out of reach."
        )
        self._load_failures = self._counter(
            "halldetect_model_load_failures", "Tries to load the models that failed."
        )
        self._runs = Counter(
            "halldetect_runs",
            "Wake-ups that were answered, by why the work ended.",
            ["stage", "ended"],
            registry=self.registry,
        )
        for stage, ended in product(Stage, Ended):
            self._runs.labels(stage.value, ended.name.lower())
        self._sweeps = self._counter(
            "halldetect_sweeps", "Rounds of the sweeper that reached the database."
        )
        self._webhook_attempts = self._counter(
            "halldetect_webhook_attempts",
            "Messages that were sent to webhooks, by how that ended.",
            outcome=AttemptOutcome,
        )
        self._webhooks_given_up = self._counter(
            "halldetect_webhook_deliveries_given_up",
            "Messages to webhooks that are sent no more: the last attempt failed, the receiver is "
            "gone (410), or the API key was revoked.",
            reason=GivenUp,
        )
        self._waiting = self._histogram(
            "halldetect_audit_waiting_seconds",
            "From the submission or the extraction until a worker took the audit first.",
        )
        self._processing = self._histogram(
            "halldetect_audit_processing_seconds",
            "From the claim of an audit until its stage was stored.",
        )
        self._turnaround = Histogram(
            "halldetect_audit_turnaround_seconds",
            "From the submission until the audit was completed.",
            buckets=_LATENCY_BUCKETS,
            registry=self.registry,
        )

    def show_state(self, state: Callable[[], WorkerState]) -> None:
        """Show also how far the models are, as `state` tells at every scrape."""
        self.registry.register(_State(state))

    def claimed(self, stage: Stage, audits: Sequence[ClaimedAudit]) -> None:
        """Note audits that were taken from the line."""
        for audit in audits:
            if audit.waited_seconds is not None:
                self._waiting.labels(stage.value).observe(audit.waited_seconds)

    def stored(self, stage: Stage, audit: ClaimedAudit) -> None:
        """Note an audit whose stage was stored."""
        held_seconds = time.monotonic() - audit.claimed_at
        self._finished.labels(stage.value, StageOutcome.COMPLETED.value).inc()
        self._processing.labels(stage.value).observe(held_seconds)
        if stage is Stage.VERIFICATION:
            self._turnaround.observe(audit.age_seconds + held_seconds)

    def failed(self, stage: Stage) -> None:
        """Note an audit that failed by its own error."""
        self._finished.labels(stage.value, StageOutcome.FAILED.value).inc()

    def charged(self) -> None:
        """Note an error that another attempt may not meet."""
        self._retries.labels(RetryCause.ERROR.value).inc()

    def swept(self, recovered: Recovered) -> None:
        """Note a round of the sweeper, and what it brought back."""
        self._sweeps.inc()
        self._expired_leases.inc(recovered.requeued + recovered.failed)
        self._retries.labels(RetryCause.WORKER_LOST.value).inc(len(recovered.charged))
        for lost in recovered.poison:
            self._finished.labels(lost.stage.value, StageOutcome.POISON.value).inc()

    def decomposed(self, decomposition: Decomposition) -> None:
        """Note what became of a response."""
        for claim in decomposition.claims:
            self._claims.labels(claim.origin.value).inc()
        for line in decomposition.rejected:
            self._rejected.labels(line.reason.value).inc()
        for call in decomposition.generations:
            self._generations.labels(call.finish.value).inc()

    @contextmanager
    def extracting(self) -> Iterator[None]:
        """Note the time in the block as the extractor's, also when it ends with an error."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._extractor_seconds.inc(time.monotonic() - began)

    def lost_leases(self, count: int) -> None:
        """Note audits that are somebody else's by now."""
        self._lost_leases.inc(count)

    def database_lost(self) -> None:
        """Note that the database went out of reach."""
        self._outages.inc()

    def load_failed(self) -> None:
        """Note that the models could not be loaded, or broke."""
        self._load_failures.inc()

    def ran(self, stage: Stage, ended: Ended) -> None:
        """Note a wake-up that was answered."""
        self._runs.labels(stage.value, ended.name.lower()).inc()

    def attempted(self, outcome: AttemptOutcome) -> None:
        """Note a message that was sent to a webhook, or could not be."""
        self._webhook_attempts.labels(outcome.value).inc()

    def gave_up(self, reason: GivenUp, deliveries: int = 1) -> None:
        """Note messages to webhooks that are sent no more."""
        self._webhooks_given_up.labels(reason.value).inc(deliveries)

    def _counter(self, name: str, text: str, **labels: type[StrEnum]) -> Counter:
        counter = Counter(name, text, list(labels), registry=self.registry)
        _begin_with_all(counter, *labels.values())
        return counter

    def _histogram(self, name: str, text: str) -> Histogram:
        histogram = Histogram(
            name, text, ["stage"], buckets=_LATENCY_BUCKETS, registry=self.registry
        )
        _begin_with_all(histogram, Stage)
        return histogram


class _Totals(Collector):
    """What `Counters` adds up, as Prometheus knows it."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        total = self._counters.total()
        for field in fields(WorkerCounters):
            if field.name not in _NOT_TOTALS:
                yield CounterMetricFamily(
                    f"halldetect_{field.name}",
                    _TOTALS[field.name],
                    value=getattr(total, field.name),
                )


class _State(Collector):
    """How far the models are: 1 for the state that is true."""

    def __init__(self, state: Callable[[], WorkerState]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        now = self._state()
        family = GaugeMetricFamily(
            "halldetect_worker_state", "1 for the state that the worker is in.", labels=["state"]
        )
        for state in WorkerState:
            family.add_metric([state.value], float(state is now))
        yield family


def _begin_with_all(metric: Counter | Histogram, *labels: type[StrEnum]) -> None:
    """Make every combination of labels be there from the start."""
    if labels:
        for values in product(*labels):
            metric.labels(*(value.value for value in values))
