"""The extractor without a language model: coverage turns every sentence into a claim."""

from __future__ import annotations

from math import inf

from halldetect.claims.extractor import Extraction
from halldetect.claims.model import FinishReason
from halldetect.provenance import ModelProvenance


class SentenceExtractor:
    """Proposes nothing, so that each checkable sentence of the response is its own claim."""

    @property
    def provenance(self) -> ModelProvenance:
        """Identity of the backend; there is no model behind it."""
        return ModelProvenance(
            name="sentences", backend="sentences", revision="", dtype="", device="cpu"
        )

    def extract(self, text: str, max_claims: int, ends_at: float = inf) -> Extraction:
        """Return the empty extraction, whatever `text` and `max_claims` are."""
        return Extraction(output="", finish=FinishReason.NONE)
