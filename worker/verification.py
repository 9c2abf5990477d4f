"""The verification stage: many audits share the encoder's batches, each gets its own result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session
from structlog.contextvars import bound_contextvars

from db.claiming import ClaimedAudit, claim_verification
from db.line import Stage
from db.spans import SpanKey
from db.verifications import save_verification
from halldetect.errors import HallDetectError, VerificationError
from halldetect.logs import get_logger
from halldetect.model_loading import audit_options
from halldetect.nli.batching import BatchStatistics
from halldetect.results import extraction_warnings, score_claims, warnings_of
from halldetect.scoring.matrix import ProbabilityMatrix
from halldetect.sources import PreparedSource
from halldetect.text.sentences import SPLITTER
from halldetect.told_faults import told
from halldetect.verification import Hypotheses, VerificationInput, hypotheses_of, verify
from worker.models import VerificationModels
from worker.probes import encoder_fault
from worker.run import Finish, ModelBroken, RunTools, WorkInterrupted
from worker.watchdog import Watchdog

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedAudit:
    """An audit as the encoder reads it."""

    audit: ClaimedAudit
    source: PreparedSource
    hypotheses: Hypotheses


@dataclass(frozen=True, slots=True)
class VerificationLoad:
    """Audits that share batches, and those that cannot be read, each with the reason."""

    prepared: list[PreparedAudit]
    refused: list[tuple[ClaimedAudit, Exception]]


class VerificationWork:
    """Verification in one run.

    Parameters
    ----------
    models : VerificationModels
        The encoder, and sources prepared for it.
    model_id : int
        The encoder's row.
    tools : RunTools
        What the run shares with its process.
    """

    stage = Stage.VERIFICATION
    looks_ahead = True

    def __init__(self, models: VerificationModels, model_id: int, tools: RunTools) -> None:
        self._nli = models.nli
        self._sources = models.sources
        self._span_key = SpanKey(SPLITTER, models.nli.tokenizer.digest, models.nli.max_tokens)
        self._options = audit_options(tools.settings)
        self._tools = tools
        self._model_id = model_id

    def claim(self, session: Session) -> list[ClaimedAudit]:
        """Take audits whose claims are known, up to a load's tokens."""
        settings = self._tools.settings
        return claim_verification(
            session,
            self._tools.owner,
            lease_seconds=settings.lease_seconds,
            max_audits=settings.load_audits,
            token_budget=settings.load_tokens,
        )

    def prepare(self, claimed: list[ClaimedAudit]) -> VerificationLoad:
        """Split and tokenise; what an audit itself is at fault for is kept for `process`."""
        load = VerificationLoad([], [])
        for audit in claimed:
            if self._tools.stopping.is_set():
                break  # the others are handed back as they came
            try:
                source = self._sources.get(audit.document_id, audit.source)
                hypotheses = hypotheses_of(audit.claims, audit.response, self._nli)
            except Exception as error:  # an audit may raise anything, and fails by itself
                load.refused.append((audit, error))
            else:
                load.prepared.append(PreparedAudit(audit, source, hypotheses))
        return load

    def process(self, load: VerificationLoad) -> Finish:
        """Run the encoder over all audits; see `worker.run.StageWork.process`."""
        audits = [audit for audit, _ in load.refused] + [one.audit for one in load.prepared]
        begun = self._tools.begin(self.stage, [audit.lease for audit in audits])
        refused = [one for one in load.refused if one[0].lease in begun]
        mine = [one for one in load.prepared if one.audit.lease in begun]
        matrices = self._verify(mine)
        return lambda: self._finish(refused, mine, matrices)

    def _finish(
        self,
        refused: list[tuple[ClaimedAudit, Exception]],
        verified: list[PreparedAudit],
        matrices: list[ProbabilityMatrix | Exception],
    ) -> int:
        for audit, error in refused:
            self._tools.outcomes.settle(audit, error)
        stored = 0
        for one, matrix in zip(verified, matrices, strict=True):
            if isinstance(matrix, Exception):
                self._tools.outcomes.settle(one.audit, matrix)
            else:
                stored += self._score_and_store(one, matrix)
        self._tools.counters.add(audits=stored)
        return stored

    def _verify(self, audits: list[PreparedAudit]) -> list[ProbabilityMatrix | Exception]:
        """Return for each audit its probabilities, or why there are none."""
        try:
            return [*self._run_encoder(audits)]
        except WorkInterrupted:
            raise
        except Exception as error:  # one audit of the load may raise anything
            self._raise_if_broken(error)
            if len(audits) == 1:
                return [error]
            _log.warning("a load failed; its audits run one by one", error=told(error))
        return [self._verify_alone(one) for one in audits]

    def _verify_alone(self, one: PreparedAudit) -> ProbabilityMatrix | Exception:
        try:
            return self._run_encoder([one])[0]
        except WorkInterrupted:
            raise
        except Exception as error:  # the audit may raise anything, and fails by itself
            self._raise_if_broken(error)
            return error

    def _raise_if_broken(self, error: Exception) -> None:
        # A number that is none may come of the audit, or of a device that gives no others any more.
        if isinstance(error, HallDetectError) and not isinstance(error, VerificationError):
            return
        if fault := encoder_fault(self._nli):
            # What it says of our own text: the error may quote somebody else's.
            raise ModelBroken(str(fault) or type(fault).__name__) from error

    def _run_encoder(self, audits: Sequence[PreparedAudit]) -> list[ProbabilityMatrix]:
        watch = _LoadWatch(self._options.token_budget, lambda: self._check(audits))
        try:
            with Watchdog(self._nli.provenance.name) as watchdog:

                def on_batch(batch: BatchStatistics) -> None:
                    watchdog.start_anew()
                    watch.on_batch(batch)

                return verify(
                    self._nli,
                    [VerificationInput(one.source, one.hypotheses) for one in audits],
                    token_budget=self._options.token_budget,
                    preselected_spans=self._options.preselected_spans,
                    on_batch=on_batch,
                )
        finally:
            self._report(watch, len(audits))

    def _check(self, audits: Sequence[PreparedAudit]) -> None:
        """Give up between two batches when nobody wants the result."""
        leases = [one.audit.lease for one in audits]
        if self._tools.stopping.is_set() or not self._tools.held.is_any_held(leases):
            raise WorkInterrupted

    def _report(self, watch: _LoadWatch, audits: int) -> None:
        done, seconds = watch.done, watch.seconds
        self._tools.counters.add(
            pairs=done.pairs,
            batches=done.batches,
            tokens=done.tokens,
            padded_tokens=done.padded_tokens,
            budget_tokens=done.batches * done.token_budget,
            busy_seconds=seconds,
        )
        _log.info(
            "verified a load",
            audits=audits,
            pairs=done.pairs,
            batches=done.batches,
            fill=round(done.fill, 3),
            padding=round(done.padding_ratio, 3),
            pairs_per_second=round(done.pairs / seconds, 1) if seconds else None,
        )

    def _score_and_store(self, one: PreparedAudit, matrix: ProbabilityMatrix) -> bool:
        audit = one.audit
        with bound_contextvars(audit_id=audit.lease.audit_id, batch_id=audit.batch_id):
            try:
                score = score_claims(audit.claims, one.source.library, matrix, audit.policy)
            except Exception as error:  # its policy may not fit its source
                self._tools.outcomes.settle(audit, error)
                return False
            is_stored = self._tools.outcomes.store(
                audit,
                lambda session: save_verification(
                    session,
                    audit.lease,
                    document_id=audit.document_id,
                    source=one.source,
                    span_key=self._span_key,
                    hypotheses=one.hypotheses,
                    matrix=matrix,
                    score=score,
                    warnings=[
                        *extraction_warnings(audit.generations),
                        *warnings_of(one.source, one.hypotheses),
                    ],
                    model_id=self._model_id,
                    preselected_spans=self._options.preselected_spans,
                ),
            )
            if is_stored:
                _log.info(
                    "audit completed", claims=len(audit.claims), spans=len(one.source.library.spans)
                )
            return is_stored


class _LoadWatch:
    """Counts the batches of one load as they are computed."""

    def __init__(self, token_budget: int, check: Callable[[], None]) -> None:
        self.done = BatchStatistics(0, 0, 0, 0, token_budget)
        self._check = check
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def on_batch(self, batch: BatchStatistics) -> None:
        self.done += batch
        self._check()
