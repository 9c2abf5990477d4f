"""Policies and scorings as JSON: what comes in, and how a rescoring is described."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from api.cursors import LARGEST_ID
from api.moments import Moment
from db.comparison import PolicyName
from db.models import RescoringState
from db.rescorings import RescoringStatus
from db.selections import MOST_IDS, Selection
from halldetect.errors import PolicyError
from halldetect.record import WITHOUT_NUL, text_fault
from halldetect.scoring.policy import LARGEST_GRANULARITY, Policy, parse_policy
from halldetect.scoring.verdict import Label
from halldetect.trail import Outcome

_MOST_EXAMPLES = 100
_ID = re.compile("[1-9][0-9]{0,18}")


def _id_text(text: str) -> str:
    if not _ID.fullmatch(text) or int(text) > LARGEST_ID:
        raise ValueError(f"ids are whole numbers from 1 to {LARGEST_ID}, in digits alone")
    return text


def _storable(text: str) -> str:
    if fault := text_fault(text):
        raise ValueError(fault)
    return text


# The pattern is for the documentation: as a fault it would say little.
IdText = Annotated[
    str, Field(json_schema_extra={"pattern": f"^{_ID.pattern}$"}), AfterValidator(_id_text)
]
Text = Annotated[str, Field(json_schema_extra=WITHOUT_NUL), AfterValidator(_storable)]


def _rules_schema() -> dict[str, Any]:
    """Describe the rules of a policy: all of it but the name, which stands beside them."""
    schema = Policy.model_json_schema()
    definitions = schema["$defs"]
    rules = {
        name: definitions[rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else rule
        for name, rule in schema["properties"].items()
        if name != "name"
    }
    powers = [2**exponent for exponent in range(LARGEST_GRANULARITY.bit_length())]
    rules["granularities"]["anyOf"][0]["items"] = {"enum": powers}
    return {
        "properties": rules,
        "required": [name for name in schema["required"] if name != "name"],
        "additionalProperties": False,
    }


class PolicyBody(BaseModel):
    """A named set of scoring rules."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(
        description="Letters, digits, dots, underscores and hyphens.",
        json_schema_extra=Policy.model_json_schema()["properties"]["name"],
    )
    rules: dict[str, Any] = Field(
        description="`claim_value` (`contrastive`, `entailment`, `contradiction`) and "
        "`aggregation` (`fedscore`, `min`, `mean`, `weighted`, `row-max`); optionally "
        "`granularities`, `margin`, `entailment_threshold`, `contradiction_threshold` and "
        "`response_threshold`. `row-max` takes `entailment` and no granularities.",
        json_schema_extra=_rules_schema(),
    )

    def policy(self) -> Policy:
        """Return the policy.

        Raises
        ------
        PolicyError
            Listing every fault.
        """
        if "name" in self.rules:
            raise PolicyError("rules.name: the name stands beside the rules, not among them")
        return parse_policy({**self.rules, "name": self.name})


class SelectionBody(BaseModel):
    """Completed audits that pass every filter that is given; without any, all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ids: list[IdText] | None = Field(
        default=None, min_length=1, max_length=MOST_IDS, description="Exactly these audits."
    )
    batch_id: IdText | None = None
    label: Label | None = Field(
        default=None, description="Under the policy that the audit was submitted with."
    )
    outcome: Outcome | None = None
    policy: Text | None = Field(
        default=None, description="Name of the policy that the audit was submitted with."
    )
    custom_id: Text | None = Field(default=None, description="Exactly this one.")
    submitted_from: Moment | None = Field(default=None, description="Then or later.")
    submitted_before: Moment | None = Field(default=None, description="Earlier.")

    def selection(self) -> Selection:
        """Return the selection as the database takes it."""
        return Selection.model_validate(self.model_dump())

    @classmethod
    def of(cls, selection: Selection) -> Self:
        """Describe a selection."""
        fields = selection.model_dump()
        if selection.ids is not None:
            fields["ids"] = [str(number) for number in selection.ids]
        if selection.batch_id is not None:
            fields["batch_id"] = str(selection.batch_id)
        return cls(**fields)


class ScoringBody(BaseModel):
    """What to score, and under which rules."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    policy: Text = Field(description="Name of a policy; its newest version is used.")
    selection: SelectionBody


class SkipView(BaseModel):
    """Audits that cannot be scored under the policy, for one reason."""

    reason: str = Field(
        description="`granularities_missing`: the source has no chunks of those that the policy "
        "reads. `spans_not_scored`: pre-selection skipped them for a claim. "
        "`probabilities_pruned`: they were deleted."
    )
    audits: int
    example: str = Field(description="Id of the first of them.")


class ScoringView(BaseModel):
    """A rescoring, and how far it is: in the end total = scored + present + skipped.

    Audits that are deleted meanwhile are in the total alone.
    """

    id: str
    status: RescoringState
    policy: PolicyName
    selection: SelectionBody
    total: int = Field(description="Audits of the selection, as it was when it was requested.")
    scored: int = Field(description="Audits that it has scored.")
    present: int = Field(description="Audits that had a score under this policy before.")
    skipped: int = Field(description="Audits that cannot be scored under this policy.")
    skips: list[SkipView]
    error: str | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, status: RescoringStatus) -> Self:
        """Describe a rescoring."""
        return cls(
            id=str(status.id),
            status=status.state,
            policy=PolicyName.of(status.policy.policy),
            selection=SelectionBody.of(status.selection.selection),
            total=status.total,
            scored=status.scored,
            present=status.present,
            skipped=status.skipped,
            skips=[
                SkipView(reason=reason, audits=skip.audits, example=str(skip.example))
                for reason, skip in status.skips.items()
            ],
            error=status.error,
            created_at=status.created_at,
            finished_at=status.finished_at,
        )


class ComparisonQuery(BaseModel):
    """What to compare a rescoring with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    against: Text | None = Field(
        default=None,
        description="Name of another policy; without one, each audit's own.",
    )
    examples: int = Field(
        default=10, ge=0, le=_MOST_EXAMPLES, description="Most audits of each list."
    )
