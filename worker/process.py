"""One worker process: its models, its leases, its runs, and its end."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from db.engine import (
    DatabaseUnavailable,
    SchemaMismatch,
    make_engine,
    session_factory,
    translated,
)
from db.line import Stage
from db.models import ModelKind, WorkerState
from db.partitions import ensure_current_partitions
from db.provenances import model_id
from db.schema_version import require_this_version
from halldetect.auditor import encoder_identity
from halldetect.logs import get_logger
from halldetect.settings import Settings
from queues.names import Queue, queue_of
from queues.wake_ups import WakeUps
from worker.counters import Counters
from worker.ended import Ended
from worker.extraction import ExtractionWork
from worker.lease_renewal import LeaseRenewal
from worker.metrics import WorkerMetrics
from worker.metrics_server import MetricsServer
from worker.models import LoadedModels, WorkerModels, load_models
from worker.outcomes import Outcomes
from worker.pauses import OutagePause
from worker.presence import Presence
from worker.recovery import Sweeper
from worker.rescoring import Rescorer, RescoringEnded
from worker.run import BoundedRun, RunSummary, RunTools, StageWork, WorkInterrupted
from worker.verification import VerificationWork
from worker.waking import Waker
from worker.webhook_sender import WebhookSender
from worker.webhooks import Courier, DeliveryRunEnded

_log = get_logger(__name__)


class WorkerProcess:
    """What one process of the service holds from its start to its end.

    Parameters
    ----------
    settings : Settings
        Models, sizes and times.
    database_url : str
        Where the audits are.
    wake_ups : WakeUps
        How others are woken.
    node : str
        Celery's name of the worker.
    queues : sequence of str
        Queues it takes tasks from.
    on_able : callable
        Called when the models are ready (True) or cannot be used (False).
    """

    def __init__(
        self,
        settings: Settings,
        *,
        database_url: str,
        wake_ups: WakeUps,
        node: str,
        queues: Sequence[str],
        on_able: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        # A restarted worker has the same node name, and must not be taken for the lost one.
        self._name = f"{node}/{secrets.token_hex(4)}"
        self._on_able = on_able
        # Whoever stands still for as long as a lease lasts loses what it has locked, too.
        idle_seconds = settings.lease_seconds
        self._engine = make_engine(database_url, idle_seconds=idle_seconds)
        self._renewal_engine = make_engine(database_url, pool_size=2, idle_seconds=idle_seconds)
        self._sessions = session_factory(self._engine)
        self._presence = Presence(self._sessions, self._name, queues)
        self._waker = Waker(self._sessions, wake_ups)
        self._counters = Counters()
        self.metrics = WorkerMetrics(self._counters)
        wake_ups.count_in(self.metrics.registry)
        self._sweeper = Sweeper(
            self._sessions,
            self._waker,
            max_attempts=settings.max_attempts,
            metrics=self.metrics,
        )
        self._sweeps = Queue.MAINTENANCE in queues
        self._stopping = threading.Event()
        self._looking = threading.Lock()  # at the tables, in the thread that loads models
        self._rescorer = Rescorer(
            self._engine, wake_ups, run_seconds=settings.run_seconds, stopping=self._stopping
        )
        self._courier = Courier(
            self._sessions,
            wake_ups,
            WebhookSender(settings.allowed_webhook_targets),
            stopping=self._stopping,
            metrics=self.metrics,
        )
        stages = frozenset(stage for stage in Stage if queue_of(stage) in queues)
        self._models = WorkerModels(lambda: self._load(stages), self._models_changed)
        self._pauses = {stage: OutagePause(self._stopping) for stage in Stage}
        self._busy = {stage: threading.Lock() for stage in Stage}
        self._renewal = LeaseRenewal(
            session_factory(self._renewal_engine),
            lease_seconds=settings.lease_seconds,
            report=self._report,
            metrics=self.metrics,
        )
        self.metrics.show_state(lambda: self._state)
        self._metrics_server: MetricsServer | None = None

    def start(self) -> None:
        """Serve figures if that is wanted, and load the models and report, all in threads.

        Raises
        ------
        InputError
            Nothing can listen where the figures are to be served.
        """
        if self._settings.metrics_port is not None:
            self._metrics_server = MetricsServer(
                self.metrics.registry, self._settings.metrics_host, self._settings.metrics_port
            )
        self._renewal.start()
        self._models.start()

    def ask_to_stop(self) -> None:
        """Let runs end soon; they hand back what they have not finished."""
        self._stopping.set()
        self._models.stop()
        self._renewal.report_soon()

    def stop(self) -> None:
        """Sign off, once no run is going on any more."""
        self.ask_to_stop()
        self._renewal.stop()
        if self._metrics_server is not None:
            self._metrics_server.stop()
        self._presence.sign_off()
        with self._looking:  # a connection that came back later would stay open
            self._engine.dispose()
        self._renewal_engine.dispose()

    def run(self, stage: Stage) -> RunSummary:
        """Answer a wake-up: work on a stage for a limited time.

        What is left is handed back, and one wake-up is sent if anything waits. After an outage of
        the database it waits a while first, longer each time.
        """
        with self._busy[stage]:
            summary = self._run(stage)
        self.metrics.ran(stage, summary.ended)
        return summary

    def sweep(self) -> None:
        """Bring back what was lost, and wake workers for what waits."""
        self._require_this_version()
        self._sweeper.sweep()
        self._rescorer.wake_stalled()
        self._courier.wake()

    def rescore(self, rescoring_id: int) -> RescoringEnded:
        """Answer a wake-up: work on a rescoring for a limited time."""
        self._require_this_version()
        return self._rescorer.run(rescoring_id)

    def deliver(self) -> DeliveryRunEnded:
        """Answer a wake-up: tell the receivers of webhooks for a limited time."""
        return self._courier.run()

    def create_partitions(self) -> None:
        """Make the partitions of the coming months."""
        with translated(), self._sessions.begin() as session:
            ensure_current_partitions(session)

    def _load(self, stages: frozenset[Stage]) -> LoadedModels:
        """Load the models, unless nothing could be done with them."""
        with self._looking:
            self._give_up_if_stopping()
            try:
                self._require_this_version()
            except SchemaMismatch:
                raise
            except DatabaseUnavailable:  # it may come back while they are loaded
                pass
        return load_models(self._settings, stages, self._give_up_if_stopping)

    def _require_this_version(self) -> None:
        with translated(), self._sessions.begin() as session:
            require_this_version(session)

    def _run(self, stage: Stage) -> RunSummary:
        models = self._models.wait()
        if models is None:
            ended = Ended.STOPPING if self._stopping.is_set() else Ended.MODEL_BROKEN
            return RunSummary(0, 0, ended, self._models.error)
        self._pauses[stage].wait()
        summary = self._run_with(stage, models)
        if summary.ended in (Ended.MODEL_BROKEN, Ended.OTHER_VERSION):
            self._models.declare_broken(summary.error or "")
        return summary

    def _run_with(self, stage: Stage, models: LoadedModels) -> RunSummary:
        try:
            with self._renewal.hold() as held:
                tools = RunTools(
                    settings=self._settings,
                    owner=self._name,
                    sessions=self._sessions,
                    held=held,
                    outcomes=Outcomes(
                        self._sessions,
                        held,
                        max_attempts=self._settings.max_attempts,
                        stage=stage,
                        metrics=self.metrics,
                    ),
                    waker=self._waker,
                    counters=self._counters,
                    metrics=self.metrics,
                    stopping=self._stopping,
                )
                summary = BoundedRun(self._work(stage, models, tools), tools).run()
            if summary.ended not in (Ended.NO_DATABASE, Ended.OTHER_VERSION):
                self._waker.wake(stage, "successor")
        except SchemaMismatch as error:
            summary = RunSummary(0, 0, Ended.OTHER_VERSION, str(error))
        except DatabaseUnavailable as error:
            summary = RunSummary(0, 0, Ended.NO_DATABASE, str(error))
        pause = self._pauses[stage].note(is_outage=summary.ended is Ended.NO_DATABASE)
        if summary.error is not None:
            _log.warning(
                "a run ended early",
                ended=summary.ended.value,
                error=summary.error,
                pause_seconds=pause,
            )
        return summary

    def _work(self, stage: Stage, models: LoadedModels, tools: RunTools) -> StageWork[Any]:
        if stage is Stage.EXTRACTION and models.extraction is not None:
            provenance = models.extraction.extractor.provenance.to_json()
            row = self._model_id(ModelKind.EXTRACTOR, provenance)
            return ExtractionWork(models.extraction, row, tools)
        if stage is Stage.VERIFICATION and models.verification is not None:
            row = self._model_id(ModelKind.NLI, encoder_identity(models.verification.nli))
            return VerificationWork(models.verification, row, tools)
        raise RuntimeError(f"this worker does not serve the queue {queue_of(stage).value}")

    def _model_id(self, kind: ModelKind, provenance: dict[str, Any]) -> int:
        with translated(), self._sessions.begin() as session:
            return model_id(session, kind, provenance)

    def _give_up_if_stopping(self) -> None:
        if self._stopping.is_set():
            raise WorkInterrupted

    @property
    def _state(self) -> WorkerState:
        return WorkerState.STOPPING if self._stopping.is_set() else self._models.state

    def _report(self, session: Session) -> None:
        self._presence.report(
            session,
            state=self._state,
            error=self._models.error,
            models=self._models.names,
            counters=self._counters.total(),
            unswept_seconds=self._sweeper.unswept_seconds if self._sweeps else None,
        )

    def _models_changed(self) -> None:
        if self._models.state is WorkerState.FAILED:
            self.metrics.load_failed()
        self._on_able(self._models.state is WorkerState.READY)
        self._renewal.report_soon()
