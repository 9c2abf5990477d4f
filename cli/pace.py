"""How far a run over many audits is, how fast it goes, and how long it still takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from halldetect.auditor import Progress, Stage
from halldetect.wording import counted


class Pace:
    """Estimates from the time that each stage has taken so far.

    Audits come in loads: first the claims of all of a load, then its pairs together. Counting
    finished audits alone would stand still and then jump, so the time left is that of both stages,
    each at its own speed.

    Parameters
    ----------
    total : int or None
        Audits to do; None when nobody knows.
    clock : callable
        Returns seconds.
    """

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._last = clock()
        self._seconds = dict.fromkeys(Stage, 0.0)
        self._extracted = 0
        self._written = 0
        self._verified = 0.0

    def restart(self) -> None:
        """Begin to count time now, for example when the models are loaded."""
        self._last = self._clock()

    def note(self, progress: Progress) -> None:
        """Take in what the auditor reports."""
        now = self._clock()
        self._seconds[progress.stage] += now - self._last
        self._last = now
        if progress.stage is Stage.EXTRACTION:
            self._extracted = progress.done
        elif progress.total:
            share = progress.done / progress.total
            self._verified = self._written + share * (self._extracted - self._written)

    def wrote(self) -> None:
        """Count one result as done."""
        self._written += 1
        self._verified = max(self._verified, self._written)

    def skipped(self) -> None:
        """Take one line that is no audit out of the total."""
        if self._total is not None:
            self._total -= 1

    @property
    def rate(self) -> float | None:
        """Audits a second, or None before the first pairs are verified."""
        seconds = sum(self._seconds.values())
        return self._verified / seconds if self._verified and seconds else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end, or None while they cannot be told."""
        if self._total is None or not self._extracted or not self._verified:
            return None
        to_extract = max(0, self._total - self._extracted)
        to_verify = max(0.0, self._total - self._verified)
        return (
            to_extract * self._seconds[Stage.EXTRACTION] / self._extracted
            + to_verify * self._seconds[Stage.VERIFICATION] / self._verified
        )

    @property
    def fraction(self) -> float | None:
        """Share of the time that has passed, 0 to 1, or None while it cannot be told."""
        left = self.seconds_left
        spent = sum(self._seconds.values())
        return None if left is None or spent + left == 0 else spent / (spent + left)

    def __str__(self) -> str:
        """Say it all in one line."""
        done = int(self._verified)
        audits = counted(done if self._total is None else self._total, "audit")
        parts = [audits if self._total is None else f"{done:,} of {audits}"]
        if self._extracted > self._verified:
            parts.append(f"claims of {self._extracted:,} known")
        if self.rate is not None:
            parts.append(f"{self.rate:,.1f} audits/s")
        if self.seconds_left is not None:
            parts.append(f"about {duration(self.seconds_left)} left")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return seconds as ``h:mm:ss``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
