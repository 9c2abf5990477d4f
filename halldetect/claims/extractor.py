"""The protocol every claim extractor follows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

from halldetect.claims.model import FinishReason
from halldetect.provenance import ModelProvenance


@dataclass(frozen=True, slots=True)
class Extraction:
    """Raw outcome of one extractor call.

    Parameters
    ----------
    output : str
        Text exactly as generated; empty for an extractor without a language model.
    finish : FinishReason
        ``length`` when the token limit cut the output, ``time`` when the time was up.
    prompt_tokens, output_tokens : int
        Tokens read and written.
    """

    output: str
    finish: FinishReason
    prompt_tokens: int = 0
    output_tokens: int = 0


class ClaimExtractor(Protocol):
    """Proposes claims for a piece of a response; it never sees the source."""

    @property
    def provenance(self) -> ModelProvenance:
        """Identity of the model behind the proposals."""

    def extract(self, text: str, max_claims: int, ends_at: float = inf) -> Extraction:
        """Propose at most `max_claims` claims, one a line, for `text`.

        An extractor that takes long stops when `time.monotonic` reaches `ends_at`, and returns
        what it has by then, with `FinishReason.TIME`.
        """
