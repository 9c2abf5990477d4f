"""The extraction stage: each response is taken apart into claims, one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from sqlalchemy.orm import Session
from structlog.contextvars import bound_contextvars

from db.claiming import ClaimedAudit, claim_extraction
from db.extractions import save_extraction
from db.line import Stage
from halldetect.auditor import decompose_response
from halldetect.claims.extractor import ClaimExtractor, Extraction
from halldetect.claims.model import Decomposition
from halldetect.errors import HallDetectError
from halldetect.logs import get_logger
from halldetect.model_loading import audit_options
from halldetect.provenance import ModelProvenance
from worker.extraction_metrics import ExtractionMetrics
from worker.models import ExtractionModels
from worker.probes import extractor_fault
from worker.run import Finish, ModelBroken, RunTools, WorkInterrupted
from worker.watchdog import Watchdog

_log = get_logger(__name__)


class ExtractionWork:
    """Extraction in one run.

    Parameters
    ----------
    models : ExtractionModels
        What proposes claims, and what counts their tokens for the encoder.
    model_id : int
        The extractor's row.
    tools : RunTools
        What the run shares with its process.
    """

    stage = Stage.EXTRACTION
    # A claim takes milliseconds and a generation seconds: a load held ahead would only be kept
    # from another worker, and from being overtaken by a more urgent audit.
    looks_ahead = False

    def __init__(self, models: ExtractionModels, model_id: int, tools: RunTools) -> None:
        self._extractor = models.extractor
        self._tokenizer = models.tokenizer
        self._options = audit_options(tools.settings)
        self._tools = tools
        self._model_id = model_id

    def claim(self, session: Session) -> list[ClaimedAudit]:
        """Take audits that nobody has read yet."""
        return claim_extraction(
            session,
            self._tools.owner,
            lease_seconds=self._tools.settings.lease_seconds,
            max_audits=self._tools.settings.extraction_load_audits,
        )

    def prepare(self, claimed: list[ClaimedAudit]) -> list[ClaimedAudit]:
        """Return them as they are: a response is short and needs no preparation."""
        return claimed

    def process(self, load: list[ClaimedAudit]) -> Finish:
        """Extract and store the claims of each audit; see `worker.run.StageWork.process`."""
        stored = 0
        try:
            for audit in load:
                if self._tools.stopping.is_set():
                    break
                if self._tools.begin(self.stage, [audit.lease]) and self._extract(audit):
                    stored += 1
                    if audit.batch_id is None:
                        self._wake_verification()  # somebody waits for a single audit
        finally:
            if stored:
                self._wake_verification()
        return lambda: stored

    def _wake_verification(self) -> None:
        self._tools.waker.wake(Stage.VERIFICATION, "extracted")

    def _extract(self, audit: ClaimedAudit) -> bool:
        with bound_contextvars(audit_id=audit.lease.audit_id, batch_id=audit.batch_id):
            started = time.monotonic()
            decomposition = self._decompose(audit)
            if decomposition is None or not self._store(audit, decomposition):
                return False
            seconds = time.monotonic() - started
            _log.info(
                "claims extracted",
                claims=len(decomposition.claims),
                rejected=len(decomposition.rejected),
                seconds=round(seconds, 3),
            )
        self._tools.counters.add(
            audits=1,
            output_tokens=sum(call.output_tokens for call in decomposition.generations),
            busy_seconds=seconds,
        )
        self._tools.metrics.extraction.decomposed(decomposition)
        return True

    def _decompose(self, audit: ClaimedAudit) -> Decomposition | None:
        extractor = _Watched(
            self._extractor,
            lambda: self._check(audit),
            self._tools.metrics.extraction,
            self._options.extractor_seconds,
        )
        try:
            return decompose_response(audit.response, extractor, self._tokenizer, self._options)
        except WorkInterrupted:
            pass  # the worker stops, or the audit was taken over or cancelled
        except Exception as error:  # an audit may raise anything, and fails by itself
            self._raise_if_broken(error)
            self._tools.outcomes.settle(audit, error)
        return None

    def _raise_if_broken(self, error: Exception) -> None:
        # A worker that stops may not ask the extractor anything any more.
        if isinstance(error, HallDetectError) or self._tools.stopping.is_set():
            return
        if fault := extractor_fault(self._extractor):
            # What it says of our own text: the error may quote somebody else's.
            raise ModelBroken(str(fault) or type(fault).__name__) from error

    def _check(self, audit: ClaimedAudit) -> None:
        if self._tools.stopping.is_set() or not self._tools.held.is_any_held([audit.lease]):
            raise WorkInterrupted

    def _store(self, audit: ClaimedAudit, decomposition: Decomposition) -> bool:
        return self._tools.outcomes.store(
            audit,
            lambda session: save_extraction(
                session,
                audit.lease,
                decomposition,
                response=audit.response,
                mode=self._options.mode,
                model_id=self._model_id,
            ),
        )


class _Watched:
    """An extractor that asks before every call whether to go on, and whose time is counted.

    A response can take minutes. A call that does not come back, although its time is up, ends the
    process.
    """

    def __init__(
        self,
        extractor: ClaimExtractor,
        check: Callable[[], None],
        metrics: ExtractionMetrics,
        seconds: float,
    ) -> None:
        self._extractor = extractor
        self._check = check
        self._metrics = metrics
        self._seconds = seconds

    @property
    def provenance(self) -> ModelProvenance:
        return self._extractor.provenance

    def extract(self, text: str, max_claims: int, ends_at: float = inf) -> Extraction:
        self._check()
        with self._metrics.extracting(), Watchdog(self.provenance.name, self._seconds):
            return self._extractor.extract(text, max_claims, ends_at)
