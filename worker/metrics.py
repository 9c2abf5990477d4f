"""What one worker process tells Prometheus of itself: counts and times, never a text or an id."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from itertools import product

from prometheus_client import Counter

from db.leases import Recovered
from db.line import Stage
from db.models import WorkerState
from queues.registry import new_registry
from worker.audit_metrics import AuditMetrics
from worker.counters import Counters
from worker.ended import Ended
from worker.extraction_metrics import ExtractionMetrics
from worker.metric_collectors import ModelState, Totals
from worker.metric_families import Families
from worker.webhook_answers import AttemptOutcome


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

    Attributes
    ----------
    audits : AuditMetrics
        What becomes of audits.
    extraction : ExtractionMetrics
        What comes of responses.
    """

    def __init__(self, counters: Counters) -> None:
        self.registry = new_registry()
        self.registry.register(Totals(counters))
        families = Families(self.registry)
        self.audits = AuditMetrics(families)
        self.extraction = ExtractionMetrics(families)
        self._lost_leases = families.counter(
            "halldetect_lost_leases",
            "Audits that were taken over or cancelled while this worker held them.",
        )
        self._expired_leases = families.counter(
            "halldetect_expired_leases",
            "Leases of lost workers that the sweeper found, charged or not.",
        )
        self._outages = families.counter(
            "halldetect_database_outages", "Times that the database went out of reach."
        )
        self._load_failures = families.counter(
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
        self._sweeps = families.counter(
            "halldetect_sweeps", "Rounds of the sweeper that reached the database."
        )
        self._webhook_attempts = families.counter(
            "halldetect_webhook_attempts",
            "Messages that were sent to webhooks, by how that ended.",
            outcome=AttemptOutcome,
        )
        self._webhooks_given_up = families.counter(
            "halldetect_webhook_deliveries_given_up",
            "Messages to webhooks that are sent no more: the last attempt failed, the receiver is "
            "gone (410), or the API key was revoked.",
            reason=GivenUp,
        )

    def show_state(self, state: Callable[[], WorkerState]) -> None:
        """Show also how far the models are, as `state` tells at every scrape."""
        self.registry.register(ModelState(state))

    def swept(self, recovered: Recovered) -> None:
        """Note a round of the sweeper, and what it brought back."""
        self._sweeps.inc()
        self._expired_leases.inc(recovered.requeued + recovered.failed)
        self.audits.recovered(recovered)

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
