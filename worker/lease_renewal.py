"""One thread with a connection of its own: renews leases, hands back, reports that we live.

A run is busy with a model for seconds or minutes; what keeps its leases alive must not depend on
it. The thread outlives the database too: it tries again until Postgres answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.orm import Session, sessionmaker

from db.engine import DatabaseUnavailable, translated
from db.leases import release, renew
from halldetect.logs import get_logger
from halldetect.told_faults import told
from worker.held_leases import HeldLeases
from worker.metrics import WorkerMetrics

# Leases are renewed four times before they run out, and a report that is 45 seconds old counts as
# a lost worker.
_RENEWALS_A_LEASE = 4
_LONGEST_PAUSE_SECONDS = 10.0
_OUTAGE_PAUSE_SECONDS = 1.0
_STOP_SECONDS = 5.0

_log = get_logger(__name__)


class LeaseRenewal:
    """Keeps the leases of all runs of this process.

    Parameters
    ----------
    sessions : sessionmaker
        On an engine that nobody else uses, with two connections: for the thread and for runs that
        end.
    lease_seconds : int
        How long a lease lasts from each renewal.
    report : callable
        Called in every round's transaction: the worker's heartbeat.
    metrics : WorkerMetrics
        Counts leases that were lost, and outages.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        *,
        lease_seconds: int,
        report: Callable[[Session], None],
        metrics: WorkerMetrics,
    ) -> None:
        self._sessions = sessions
        self._lease_seconds = lease_seconds
        self._report = report
        self._metrics = metrics
        self._pause = min(lease_seconds / _RENEWALS_A_LEASE, _LONGEST_PAUSE_SECONDS)
        self._lock = threading.Lock()
        self._held: set[HeldLeases] = set()
        self._owed: set[HeldLeases] = set()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="lease-renewal", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the round at hand."""
        self._stopping = True
        self._wake.set()
        self._thread.join(_STOP_SECONDS)

    def report_soon(self) -> None:
        """Do a round now: something changed that others should see."""
        self._wake.set()

    @contextmanager
    def hold(self) -> Iterator[HeldLeases]:
        """Keep the leases that a run adds; at the end hand back at once whatever it still has.

        Without a database the audits are handed back as soon as it answers again, so that an
        outage is nobody's fault.
        """
        held = HeldLeases()
        with self._lock:
            self._held.add(held)
        try:
            yield held
        finally:
            self._hand_back(held)

    def _hand_back(self, held: HeldLeases) -> None:
        try:
            with translated(), self._sessions.begin() as session:
                _release_all(session, held)
        except Exception as error:  # whatever it is, these leases must not be renewed for ever
            _log.warning("audits are handed back when the database answers", error=told(error))
            with self._lock:
                self._owed.add(held)
        else:
            with self._lock:
                self._held.discard(held)

    def _loop(self) -> None:
        reachable = True
        while not self._stopping:
            try:
                self._round()
            except DatabaseUnavailable as error:
                if reachable:
                    _log.warning("leases cannot be renewed", error=str(error))
                    self._metrics.database_lost()
                reachable = False
            except Exception:  # the thread must live: without it every lease of the process dies
                _log.exception("a round of lease renewal failed")
            else:
                if not reachable:
                    _log.info("leases are renewed again")
                reachable = True
            self._wake.wait(self._pause if reachable else min(_OUTAGE_PAUSE_SECONDS, self._pause))
            self._wake.clear()

    def _round(self) -> None:
        with self._lock:
            owed, kept = set(self._owed), self._held - self._owed
        with translated(), self._sessions.begin() as session:
            for held in owed:
                _release_all(session, held)
            asked = {held: held.remaining() for held in kept}
            leases = [lease for some in asked.values() for lease in some]
            renewed = renew(session, leases, self._lease_seconds)
            self._report(session)
        for held, some in asked.items():
            self._metrics.lost_leases(held.mark_lost(some, renewed))
        with self._lock:
            self._held -= owed
            self._owed -= owed


def _release_all(session: Session, held: HeldLeases) -> None:
    for begun, leases in held.by_progress().items():
        release(session, leases, begun=begun)
