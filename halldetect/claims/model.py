"""What the decomposition of a response yields: claims, refusals and everything left out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from halldetect.spans import Span


class ClaimOrigin(StrEnum):
    """Who worded a claim."""

    LLM = "llm"
    SENTENCE = "sentence"


class RejectionReason(StrEnum):
    """Why a generated line is not an assertion of the response."""

    WORD = "word"
    NAME = "name"
    NUMBER = "number"
    NEGATION = "negation"
    QUALIFIER = "qualifier"
    ORDER = "order"
    RECOMBINED = "recombined"
    DUPLICATE = "duplicate"
    TRUNCATED = "truncated"
    OVER_CAP = "over_cap"
    NOT_CHECKABLE = "not_checkable"


class UnauditedReason(StrEnum):
    """Why a sentence of the response is no claim."""

    GREETING = "greeting"
    QUESTION = "question"
    REFUSAL = "refusal"
    LEAD_IN = "lead_in"
    CODE = "code"
    TABLE_RULE = "table_rule"
    NO_WORDS = "no_words"
    NOT_EXTRACTED = "not_extracted"  # mode `paper` only: the extractor left it out


class ExtractionMode(StrEnum):
    """How claims are made from what the extractor says."""

    COVERED = "covered"  # windows, copy check, coverage
    PAPER = "paper"  # one pass, cap, no repair


class FinishReason(StrEnum):
    """Why a generation ended."""

    STOP = "stop"
    LENGTH = "length"  # the token limit cut the output
    REPETITION = "repetition"  # the model had begun to loop, which greedy decoding never leaves
    CAP = "cap"  # as many lines as claims were asked for
    TIME = "time"  # the audit's time for extraction was up
    NONE = "none"  # nothing was generated: the extractor has no language model


@dataclass(frozen=True, slots=True)
class Claim:
    """One atomic assertion of the response.

    Parameters
    ----------
    text : str
        What the claim says: markup, list marks and invisible characters removed.
    span : Span
        Where it stands in the raw response.
    origin : ClaimOrigin
        ``llm`` when the extractor worded it, ``sentence`` when coverage added it.
    has_name, has_number, has_date : bool
        Flags used by weighted policies.
    antecedent : Span or None
        For a claim that opens with a pronoun: the sentence before it in the
        response, which verification may show the encoder.
    part : int
        0, or the position of this piece in a sentence too long for the encoder.
    """

    text: str
    span: Span
    origin: ClaimOrigin
    has_name: bool
    has_number: bool
    has_date: bool
    antecedent: Span | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class RejectedClaim:
    """A generated line that the response does not assert; never audited."""

    text: str
    reason: RejectionReason
    detail: str


@dataclass(frozen=True, slots=True)
class UnauditedSentence:
    """A sentence of the response that no claim covers, and why."""

    span: Span
    reason: UnauditedReason


@dataclass(frozen=True, slots=True)
class Generation:
    """One call of the extractor over one window of the response."""

    window: Span
    finish: FinishReason
    parsed: bool
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The response broken up, with nothing lost: each sentence is in `claims` or `unaudited`."""

    claims: tuple[Claim, ...]
    rejected: tuple[RejectedClaim, ...]
    unaudited: tuple[UnauditedSentence, ...]
    generations: tuple[Generation, ...]
