"""Reviews as JSON: what comes in, and what is said of claims and verdicts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from api.schemas import NextCursor, PageQuery
from db.flagged_claims import FlagCounts, FlaggedClaim
from db.review_agreement import Agreement, flag_precision
from db.reviews import StoredReview, reviewer_fault
from db.trails import StoredClaim
from halldetect.record import WITHOUT_NUL, text_fault
from halldetect.scoring.verdict import Label, Verdict

_LONGEST_NAME = 200
_LONGEST_NOTE = 10_000


def _storable(text: str) -> str:
    if fault := text_fault(text):
        raise ValueError(fault)
    return text


def _plain_name(name: str) -> str:
    if fault := reviewer_fault(name):
        raise ValueError(fault)
    return name


ReviewerName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_NAME,
        description="Who reviews: no control or invisible characters, no blanks around it.",
        json_schema_extra=WITHOUT_NUL,
    ),
    AfterValidator(_plain_name),
]
# The limit stands with the text: of anything else, it would be told in items.
Note = Annotated[
    str,
    Field(max_length=_LONGEST_NOTE, json_schema_extra=WITHOUT_NUL),
    AfterValidator(_storable),
]


class ReviewBody(BaseModel):
    """What a reviewer says of a claim."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    reviewer: ReviewerName
    verdict: Verdict = Field(description="What the verdict should be.")
    note: Note | None = Field(default=None, description="Why.")


class ReviewView(BaseModel):
    """A review as it was stored; it never changes."""

    id: str
    claim_id: str
    audit_id: str
    claim_text: str = Field(description="The claim, as it was read.")
    verdict: Verdict = Field(description="The verdict on it, as it stood.")
    reviewer: str
    reviewer_verdict: Verdict = Field(description="What the verdict should be.")
    note: str | None
    created_at: datetime

    @classmethod
    def of(cls, review: StoredReview) -> Self:
        """Describe a review."""
        return cls(
            id=str(review.id),
            claim_id=str(review.claim_id),
            audit_id=str(review.audit_id),
            claim_text=review.claim_text,
            verdict=review.verdict,
            reviewer=review.reviewer,
            reviewer_verdict=review.reviewer_verdict,
            note=review.note,
            created_at=review.created_at,
        )


class ReviewList(BaseModel):
    """All reviews of a claim, oldest first; of each reviewer the last counts."""

    items: list[ReviewView]


class FlaggedQuery(PageQuery):
    """Whose flagged claims to list."""

    limit: int = Field(default=20, ge=1, le=100, description="Most items of the page.")
    reviewer: ReviewerName = Field(description="Claims that this reviewer has reviewed stay out.")


class FlaggedClaimView(BaseModel):
    """A claim that has something against it, and the response it stands in."""

    audit_id: str
    custom_id: str | None
    line: int | None
    fedscore: float | None
    label: Label | None
    context: str | None
    response: str
    claim: StoredClaim

    @classmethod
    def of(cls, flagged: FlaggedClaim) -> Self:
        """Describe a flagged claim."""
        audit = flagged.audit
        return cls(
            audit_id=audit.id,
            custom_id=audit.custom_id,
            line=audit.line,
            fedscore=audit.fedscore,
            label=audit.label,
            context=audit.context,
            response=audit.response,
            claim=flagged.claim,
        )


class FlaggedPage(BaseModel):
    """Flagged claims that the reviewer has not reviewed, in the order of submission."""

    items: list[FlaggedClaimView]
    next_cursor: NextCursor
    flagged: int = Field(description="Flagged claims of the whole batch.")
    reviewed: int = Field(description="Of these, those that the reviewer has reviewed.")

    @classmethod
    def of(cls, found: list[FlaggedClaim], counts: FlagCounts, next_cursor: str | None) -> Self:
        """Describe a page."""
        return cls(
            items=[FlaggedClaimView.of(flagged) for flagged in found],
            next_cursor=next_cursor,
            flagged=counts.flagged,
            reviewed=counts.reviewed,
        )


class AgreementView(BaseModel):
    """What reviewers said where one verdict stood."""

    verdict: Verdict = Field(description="The verdict that stood.")
    reviews: int
    supported: int = Field(description="Reviews that say so.")
    contradicted: int = Field(description="Reviews that say so.")
    unsupported: int = Field(description="Reviews that say so.")
    precision: float | None = Field(description="Share that says the same; null without reviews.")

    @classmethod
    def of(cls, one: Agreement) -> Self:
        """Describe an agreement."""
        return cls(**{name: getattr(one, name) for name in cls.model_fields})


class ReviewSummary(BaseModel):
    """How reviews compare with the verdicts; of each reviewer's reviews of a claim the last."""

    by_verdict: list[AgreementView]
    flag_precision: float | None = Field(
        description="Share of the reviewed flags (contradicted or unsupported) where the reviewer, "
        "too, finds that the source does not bear the claim out; null without any."
    )

    @classmethod
    def of(cls, agreements: list[Agreement]) -> Self:
        """Describe them."""
        return cls(
            by_verdict=[AgreementView.of(one) for one in agreements],
            flag_precision=flag_precision(agreements),
        )


class SummaryQuery(BaseModel):
    """Whose reviews to compare."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reviewer: ReviewerName | None = Field(default=None, description="Only this reviewer's.")
