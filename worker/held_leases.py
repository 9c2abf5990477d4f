"""The leases of one run: which audits it holds, has begun, or has lost meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from db.leases import Lease


class HeldLeases:
    """Leases of one run, shared by the run and the thread that renews them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[Lease, bool] = {}
        self._lost: set[Lease] = set()

    def add(self, leases: Iterable[Lease]) -> None:
        """Hold leases that were just claimed."""
        with self._lock:
            self._begun.update((lease, False) for lease in leases)

    def begin(self, lease: Lease) -> bool:
        """Note that work on an audit begins; False when the lease was lost before."""
        with self._lock:
            if lease in self._lost:
                return False
            self._begun[lease] = True
            return True

    def drop(self, lease: Lease) -> None:
        """Forget a lease whose audit was written, or taken away."""
        with self._lock:
            self._begun.pop(lease, None)
            self._lost.discard(lease)

    def abandon_begun(self) -> None:
        """Let the leases of audits that were begun run out: their worker counts as lost."""
        with self._lock:
            self._begun = {lease: False for lease, begun in self._begun.items() if not begun}

    def is_any_held(self, leases: Collection[Lease]) -> bool:
        """Tell whether at least one of `leases` was not lost."""
        with self._lock:
            return any(lease not in self._lost for lease in leases)

    def remaining(self) -> list[Lease]:
        """Return the leases to renew."""
        with self._lock:
            return [lease for lease in self._begun if lease not in self._lost]

    def lose(self, lease: Lease) -> bool:
        """Note that a lease is someone else's by now; False if that was known."""
        with self._lock:
            is_news = lease not in self._lost
            self._lost.add(lease)
            return is_news

    def mark_lost(self, asked: Iterable[Lease], still_held: Collection[int]) -> int:
        """Note which of the leases that were to be renewed are someone else's by now.

        Parameters
        ----------
        asked : iterable of Lease
            Those that were to be renewed; one that the run has dropped since is no loss.
        still_held : collection of int
            Ids of the audits that were renewed.

        Returns
        -------
        int
            How many of them were not known to be lost.
        """
        with self._lock:
            known = len(self._lost)
            self._lost.update(
                lease
                for lease in asked
                if lease.audit_id not in still_held and lease in self._begun
            )
            return len(self._lost) - known

    def by_progress(self) -> dict[bool, list[Lease]]:
        """Return what is to be handed back: leases that were begun (True) and the others."""
        with self._lock:
            mine = {lease: begun for lease, begun in self._begun.items() if lease not in self._lost}
        return {
            progress: [lease for lease, begun in mine.items() if begun is progress]
            for progress in (True, False)
        }
