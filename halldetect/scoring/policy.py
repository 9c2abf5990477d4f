"""Policies: immutable, named, versioned rules that turn a probability matrix into verdicts."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from halldetect.errors import PolicyError


class ClaimValue(StrEnum):
    """What one claim is worth, given its best entailment E and best contradiction C."""

    CONTRASTIVE = "contrastive"  # E - C
    ENTAILMENT = "entailment"  # E
    CONTRADICTION = "contradiction"  # 1 - C


class Aggregation(StrEnum):
    """How the claim values of a response become one number."""

    FEDSCORE = "fedscore"
    MIN = "min"
    MEAN = "mean"
    WEIGHTED = "weighted"
    ROW_MAX = "row-max"


LARGEST_GRANULARITY = 2**31


def _without_negative_zero(value: float) -> float:
    # -0.0 equals 0.0 but is written differently, so it would change the version.
    return value + 0.0


def _sorted_granularities(values: tuple[int, ...]) -> tuple[int, ...]:
    wrong = [value for value in values if value < 1 or value & (value - 1)]
    if wrong:
        raise ValueError(f"must be positive powers of two, not {', '.join(map(str, wrong))}")
    return tuple(sorted(set(values)))


Name = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)
]
Threshold = Annotated[
    float,
    Field(strict=True, ge=0, le=1, allow_inf_nan=False),
    AfterValidator(_without_negative_zero),
]
Margin = Annotated[
    float,
    Field(strict=True, ge=0, lt=1, allow_inf_nan=False),
    AfterValidator(_without_negative_zero),
]
Granularities = Annotated[
    tuple[Annotated[int, Field(strict=True, le=LARGEST_GRANULARITY)], ...],
    Field(min_length=1, max_length=64),
    AfterValidator(_sorted_granularities),
]


class Policy(BaseModel):
    """One set of scoring rules.

    Build it from outside data with `parse_policy`, which lists every fault at once.

    Parameters
    ----------
    name : str
        Letters, digits, dots, underscores and hyphens; not part of the version.
    claim_value : ClaimValue
        What a claim is worth; ``row-max`` needs ``entailment``.
    aggregation : Aggregation
        How claim values become the response score. ``row-max`` reads the finest stored
        granularity of every source, so it takes no `granularities`.
    granularities : tuple of int or None
        Granularities whose spans count as evidence, each a power of two; those that a source does
        not have are passed over. None: all that are stored.
    margin : float
        In [0, 1). A claim value must lie above it to be supported; under ``fedscore`` a single
        value at or below it makes the response score 1.
    entailment_threshold, contradiction_threshold : float
        In [0, 1]. What the best E (best C) must reach for ``supported`` (``contradicted``).
    response_threshold : float
        In [0, 1]. Response scores from here on are labelled hallucinated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    claim_value: ClaimValue
    aggregation: Aggregation
    granularities: Granularities | None = None
    margin: Margin = 0.0
    entailment_threshold: Threshold = 0.5
    contradiction_threshold: Threshold = 0.5
    response_threshold: Threshold = 0.5

    @model_validator(mode="after")
    def _consistent(self) -> Policy:
        faults = _contradictions(self.model_dump())
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def version(self) -> str:
        """Sixteen hexadecimal digits that change with any rule and never with the name."""
        content = self.model_dump(mode="json", exclude={"name"})
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    @property
    def reads_flags(self) -> bool:
        """Whether it matters which claims have a name, a number or a date."""
        return self.aggregation is Aggregation.WEIGHTED

    @property
    def reads_chunks(self) -> bool:
        """Whether it matters which spans make up which chunks."""
        return self.granularities is not None or self.aggregation is Aggregation.ROW_MAX


def _contradictions(fields: Mapping[str, Any]) -> list[str]:
    """List the rules that do not go together; fields may still be raw and wrong by themselves."""
    if fields.get("aggregation") != Aggregation.ROW_MAX:
        return []
    faults = []
    if "claim_value" in fields and fields["claim_value"] != ClaimValue.ENTAILMENT:
        faults.append("claim_value: row-max averages entailment, so this must be 'entailment'")
    if fields.get("granularities") is not None:
        faults.append("granularities: row-max reads the finest stored granularity, leave this out")
    return faults


def parse_policy(mapping: Mapping[str, Any]) -> Policy:
    """Build a policy from outside data.

    Parameters
    ----------
    mapping : Mapping
        Field names of `Policy` with plain JSON values.

    Raises
    ------
    PolicyError
        The data is no valid policy; the message lists every fault.
    """
    if not isinstance(mapping, Mapping):
        raise PolicyError(f"a policy is an object of named fields, not {type(mapping).__name__}")
    try:
        return Policy.model_validate(dict(mapping))
    except ValidationError as error:
        faults = _faults_of(error, mapping)
    raise PolicyError(f"policy {reprlib.repr(mapping.get('name'))}: {'; '.join(faults)}")


def _faults_of(error: ValidationError, mapping: Mapping[str, Any]) -> list[str]:
    faults = []
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"]))
        if not place:
            continue  # the check of fields against each other, listed below
        got = "" if detail["type"] == "missing" else f" (got {reprlib.repr(detail['input'])})"
        faults.append(f"{place}: {detail['msg']}{got}")
    # Pydantic compares fields with each other only once each is right by itself.
    return faults + _contradictions(mapping)


PAPER = Policy(name="paper", claim_value=ClaimValue.CONTRASTIVE, aggregation=Aggregation.FEDSCORE)
"""The rules of arXiv 2608.05823: E - C, geometric mean, no margin, thresholds of one half."""

EMBEDDED = Policy(
    name="embedded",
    claim_value=ClaimValue.ENTAILMENT,
    aggregation=Aggregation.MIN,
    entailment_threshold=0.75,
    contradiction_threshold=0.8,
    response_threshold=0.25,
)
"""Rules for the bundled small encoder, whose contradictions over irrelevant spans mislead.

A response is flagged when any claim's best entailment stays at or below 0.75. docs/accuracy.md
has the labelled data behind the choice.
"""

MEAN = Policy(name="mean", claim_value=ClaimValue.ENTAILMENT, aggregation=Aggregation.MEAN)
"""A graded score: every claim counts alike, and one unsupported claim does not decide."""

ROW_MAX = Policy(name="row-max", claim_value=ClaimValue.ENTAILMENT, aggregation=Aggregation.ROW_MAX)
"""The mean of the claims' best entailments over the finest chunks alone."""

BUILTIN_POLICIES: Mapping[str, Policy] = MappingProxyType(
    {policy.name: policy for policy in (PAPER, EMBEDDED, MEAN, ROW_MAX)}
)
"""The policies that need no definition, by name."""


def policy_named(name: str) -> Policy:
    """Return the built-in policy called `name`.

    Raises
    ------
    PolicyError
        There is none of that name; the message lists the names there are.
    """
    try:
        return BUILTIN_POLICIES[name]
    except KeyError:
        known = ", ".join(sorted(BUILTIN_POLICIES))
        raise PolicyError(f"no policy is called {name!r}; there are: {known}") from None
