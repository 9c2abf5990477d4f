"""How an attempt on an audit ends: its result is stored, or it fails, or it may be tried again."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session, sessionmaker
from structlog.contextvars import bound_contextvars

from db.claiming import ClaimedAudit
from db.engine import DatabaseUnavailable, translated
from db.leases import LeaseLost
from db.progress import charge_fault, fail_audit
from db.schema_version import require_this_version
from halldetect.errors import HallDetectError
from halldetect.logs import get_logger
from worker.held_leases import HeldLeases

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
    """

    def __init__(
        self, sessions: sessionmaker[Session], held: HeldLeases, max_attempts: int
    ) -> None:
        self._sessions = sessions
        self._held = held
        self._max_attempts = max_attempts

    def store(self, audit: ClaimedAudit, write: Write) -> bool:
        """Write a result; return whether it was stored."""
        try:
            return self._write(audit, write)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # what Postgres refuses is this audit's matter alone
            self.settle(audit, error)
            return False

    def settle(self, audit: ClaimedAudit, error: Exception) -> None:
        """End an attempt that raised `error`.

        What the method raises on purpose is final. Anything else may be passing, so the audit is
        tried again until it has failed `max_attempts` times.
        """
        with bound_contextvars(audit_id=audit.lease.audit_id, batch_id=audit.batch_id):
            if isinstance(error, HallDetectError):
                _log.info("audit failed", error=str(error))
                self._write(audit, lambda session: fail_audit(session, audit.lease, str(error)))
            else:
                _log.error("audit raised an error", exc_info=error)
                message = f"{type(error).__name__}: {error}"
                self._write(audit, lambda session: self._charge(session, audit, message))

    def _charge(self, session: Session, audit: ClaimedAudit, message: str) -> None:
        require_this_version(session)
        charge_fault(session, audit.lease, message, self._max_attempts)

    def _write(self, audit: ClaimedAudit, write: Write) -> bool:
        try:
            with translated(), self._sessions.begin() as session:
                write(session)
        except LeaseLost as error:
            _log.info("a late result was not written", error=str(error))
            is_written = False
        else:
            is_written = True
        self._held.drop(audit.lease)
        return is_written
