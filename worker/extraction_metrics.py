"""What comes of responses in the extractor: counts, and its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from halldetect.claims.model import ClaimOrigin, Decomposition, FinishReason, RejectionReason
from worker.metric_families import Families


class ExtractionMetrics:
    """The figures of one process's extractor."""

    def __init__(self, families: Families) -> None:
        self._claims = families.counter(
            "halldetect_claims", "Claims that were extracted.", origin=ClaimOrigin
        )
        self._rejected = families.counter(
            "halldetect_rejected_claims",
            "Lines of the extractor that the response does not say.",
            reason=RejectionReason,
        )
        self._generations = families.counter(
            "halldetect_generations",
            "Answers of the extractor, by why they end.",
            finish=FinishReason,
        )
        self._extractor_seconds = families.counter(
            "halldetect_extractor_seconds", "Time in the extractor's own model."
        )

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
