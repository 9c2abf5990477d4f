"""How an attempt on an audit ends: its result is stored, or it fails, or it may be tried again."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session, sessionmaker
from structlog.contextvars import bound_contextvars

from db.claiming import ClaimedAudit
from db.engine import DatabaseUnavailable, translated
from db.leases import LeaseLost
from db.line import Stage
from db.progress import charge_fault, fail_audit
from db.schema_version import require_this_version
from halldetect.errors import HallDetectError
from halldetect.logs import get_logger
from worker.held_leases import HeldLeases
from worker.metrics import WorkerMetrics

Write = Callable[[Session], None]

_log = get_logger(__name__)


class Outcomes:
    """Ends the attempts of one run, each audit in a transaction of its own.

    A lost lease is only logged: the audit is someone else's by now. When the database is gone,
    `DatabaseUnavailable` reaches the caller and the lease stays held, to be handed back; so it does
    when the tables are of another version, which may refuse any result.

    Parameters
    ----------
    sessions : sessionmaker
        Where results go.
    held : HeldLeases
        The run's leases.
    max_attempts : int
        Faults at which an audit fails.
    stage : Stage
        What the run does.
    metrics : WorkerMetrics
        Counts how attempts end.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        held: HeldLeases,
        *,
        max_attempts: int,
        stage: Stage,
        metrics: WorkerMetrics,
    ) -> None:
        self._sessions = sessions
        self._held = held
        self._max_attempts = max_attempts
        self._stage = stage
        self._metrics = metrics

    def store(self, audit: ClaimedAudit, write: Write) -> bool:
        """Write a result; return whether it was stored."""
        try:
            is_stored = self._write(audit, write)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # what Postgres refuses is this audit's matter alone
            self.settle(audit, error)
            return False
        if is_stored:
            self._metrics.audits.stored(self._stage, audit)
        return is_stored

    def settle(self, audit: ClaimedAudit, error: Exception) -> None:
        """End an attempt that raised `error`.

        What the method raises on purpose is final. Anything else may be passing, so the audit is
        tried again until it has failed `max_attempts` times.
        """
        with bound_contextvars(audit_id=audit.lease.audit_id, batch_id=audit.batch_id):
            if isinstance(error, HallDetectError):
                _log.info("audit failed", error=str(error))
                if self._write(audit, lambda session: fail_audit(session, audit.lease, str(error))):
                    self._metrics.audits.failed(self._stage)
            else:
                _log.error("audit raised an error", exc_info=error)
                self._charge(audit, f"{type(error).__name__}: {error}")

    def _charge(self, audit: ClaimedAudit, message: str) -> None:
        is_last = False

        def write(session: Session) -> None:
            nonlocal is_last
            require_this_version(session)
            is_last = charge_fault(session, audit.lease, message, self._max_attempts)

        if not self._write(audit, write):
            return
        if is_last:
            self._metrics.audits.failed(self._stage)
        else:
            self._metrics.audits.charged()

    def _write(self, audit: ClaimedAudit, write: Write) -> bool:
        try:
            with translated(), self._sessions.begin() as session:
                write(session)
        except LeaseLost as error:
            _log.info("a late result was not written", error=str(error))
            self._metrics.lost_leases(self._held.lose(audit.lease))
            is_written = False
        else:
            is_written = True
        self._held.drop(audit.lease)
        return is_written
