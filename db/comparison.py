"""What a policy would change: audits of a rescoring, before and after, and which labels flip."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import ARRAY, CTE, ColumnElement, Select, Text, and_, case, func, literal, select
from sqlalchemy.orm import Session, aliased

from db.models import Audit, Claim, RescoringState, Scoring
from db.policies import StoredPolicy
from db.rescorings import RescoringStatus
from db.selections import selected
from halldetect.scoring.policy import Policy
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class PolicyName(_Report):
    """A version of a policy."""

    name: str
    version: str

    @classmethod
    def of(cls, policy: Policy) -> PolicyName:
        """Name `policy`."""
        return cls(name=policy.name, version=policy.version)


class LabelChanges(_Report):
    """Audits by their label before and after."""

    stay_faithful: int
    stay_hallucinated: int
    to_hallucinated: int
    to_faithful: int


class VerdictChange(_Report):
    """Claims with one verdict before and one after."""

    before: Verdict
    after: Verdict
    claims: int


class ScoreShift(_Report):
    """One audit before and after."""

    id: str
    custom_id: str | None
    score_before: float
    score_after: float
    label_before: Label
    label_after: Label


class Comparison(_Report):
    """What scores under a policy change, over the audits of a rescoring.

    Parameters
    ----------
    policy : PolicyName
        The policy of the rescoring: "after".
    against : PolicyName or None
        The policy "before"; None stands for the one that each audit was submitted with.
    state : RescoringState
        How far the rescoring is; until it is completed, audits are missing.
    selected : int
        Audits that the rescoring is about, as many as there are by now.
    compared : int
        Those of them that have both scores.
    no_checkable_claims : int
        Those of them that have no claims, so no score under any policy.
    unscored : int
        The rest: under one of the policies they have not been scored, or cannot be.
    labels : LabelChanges
        Of the compared audits.
    mean_before, mean_after : float or None
        Mean response scores of the compared audits.
    verdicts : list of VerdictChange
        Of the claims of the compared audits, every pair of verdicts once.
    to_hallucinated, to_faithful : list of ScoreShift
        Audits whose label flips, the largest shifts first.
    largest_shifts : list of ScoreShift
        Audits whose score changes most, whether or not the label does.
    """

    policy: PolicyName
    against: PolicyName | None
    state: RescoringState
    selected: int
    compared: int
    no_checkable_claims: int
    unscored: int
    labels: LabelChanges
    mean_before: float | None
    mean_after: float | None
    verdicts: list[VerdictChange]
    to_hallucinated: list[ScoreShift]
    to_faithful: list[ScoreShift]
    largest_shifts: list[ScoreShift]


def compare(
    session: Session, rescoring: RescoringStatus, against: StoredPolicy | None, *, examples: int
) -> Comparison:
    """Compare what audits are under a rescoring's policy with what they are under another.

    Parameters
    ----------
    session : Session
        Where they are.
    rescoring : RescoringStatus
        Whose audits, and what comes after.
    against : StoredPolicy or None
        What comes before; None takes the policy that each audit was submitted with.
    examples : int
        Most audits of each list.
    """
    judged = _judged(rescoring, against)
    tally = _tally(session, judged)
    flips = {
        label: _shifts(
            session, judged, examples, judged.c.label_after == label, judged.c.label_before != label
        )
        for label in Label
    }
    return Comparison(
        policy=PolicyName.of(rescoring.policy.policy),
        against=None if against is None else PolicyName.of(against.policy),
        state=rescoring.state,
        selected=tally.selected,
        compared=tally.compared,
        no_checkable_claims=tally.claimless,
        unscored=tally.selected - tally.compared - tally.claimless,
        labels=LabelChanges(
            stay_faithful=tally.labels[Label.FAITHFUL, Label.FAITHFUL],
            stay_hallucinated=tally.labels[Label.HALLUCINATED, Label.HALLUCINATED],
            to_hallucinated=tally.labels[Label.FAITHFUL, Label.HALLUCINATED],
            to_faithful=tally.labels[Label.HALLUCINATED, Label.FAITHFUL],
        ),
        mean_before=tally.mean(tally.sum_before),
        mean_after=tally.mean(tally.sum_after),
        verdicts=_verdict_changes(session, judged),
        to_hallucinated=flips[Label.HALLUCINATED],
        to_faithful=flips[Label.FAITHFUL],
        largest_shifts=_shifts(session, judged, examples, judged.c.shift != 0),
    )


@dataclass(slots=True)
class _Tally:
    """Audits of the selection, counted and added up."""

    selected: int = 0
    claimless: int = 0
    labels: Counter[tuple[Label, Label]] = field(default_factory=Counter)
    sum_before: float = 0.0
    sum_after: float = 0.0

    @property
    def compared(self) -> int:
        return self.labels.total()

    def mean(self, total: float) -> float | None:
        return total / self.compared if self.compared else None


def _tally(session: Session, judged: CTE) -> _Tally:
    groups = (judged.c.label_before, judged.c.label_after, judged.c.is_claimless)
    rows = session.execute(
        select(
            *groups,
            func.count().label("audits"),
            func.sum(judged.c.score_before).label("before"),
            func.sum(judged.c.score_after).label("after"),
        ).group_by(*groups)
    )
    tally = _Tally()
    for row in rows:
        tally.selected += row.audits
        if row.is_claimless:
            tally.claimless += row.audits
        elif row.label_before is not None and row.label_after is not None:
            tally.labels[row.label_before, row.label_after] += row.audits
            tally.sum_before += row.before
            tally.sum_after += row.after
    return tally


@dataclass(frozen=True, slots=True)
class _Side:
    """Expressions for what audits are under one policy, null where they are not scored.

    The verdicts are null where they are those of the claims' own rows.
    """

    score: Any
    label: Any
    verdicts: Any


def _judged(rescoring: RescoringStatus, against: StoredPolicy | None) -> CTE:
    """Return the audits of the rescoring with both judgements side by side."""
    statement: Select[*tuple[Any, ...]] = select(
        Audit.id, Audit.custom_id, (Audit.outcome != Outcome.SCORED).label("is_claimless")
    )
    statement, before = _side(statement, against)
    statement, after = _side(statement, rescoring.policy)
    return (
        statement.add_columns(
            before.score.label("score_before"),
            before.label.label("label_before"),
            before.verdicts.label("verdicts_before"),
            after.score.label("score_after"),
            after.label.label("label_after"),
            after.verdicts.label("verdicts_after"),
            (after.score - before.score).label("shift"),
        )
        .where(*selected(rescoring.selection))
        .cte("judged")
    )


def _side(
    statement: Select[*tuple[Any, ...]], policy: StoredPolicy | None
) -> tuple[Select[*tuple[Any, ...]], _Side]:
    """Join what a policy needs; None is the policy that each audit was submitted with."""
    if policy is None:
        return statement, _Side(Audit.fedscore, Audit.label, literal(None, ARRAY(Text)))
    scoring = aliased(Scoring)
    is_own = Audit.policy_id == policy.id
    return (
        statement.outerjoin(
            scoring, and_(scoring.audit_id == Audit.id, scoring.policy_id == policy.id)
        ),
        _Side(
            case((is_own, Audit.fedscore), else_=scoring.response_score),
            case((is_own, Audit.label), else_=scoring.label),
            scoring.verdicts,
        ),
    )


def _verdict_changes(session: Session, judged: CTE) -> list[VerdictChange]:
    """Count the claims of the compared audits by their verdicts before and after."""
    groups = [
        func.coalesce(verdicts[Claim.position + 1], Claim.verdict)
        for verdicts in (judged.c.verdicts_before, judged.c.verdicts_after)
    ]
    counted = session.execute(
        select(*groups, func.count())
        .select_from(judged)
        .join(Claim, Claim.audit_id == judged.c.id)
        .where(judged.c.shift.is_not(None))
        .group_by(*groups)
    )
    claims = {(row[0], row[1]): row[2] for row in counted}
    return [
        VerdictChange(before=before, after=after, claims=claims.get((before, after), 0))
        for before, after in product(Verdict, Verdict)
    ]


def _shifts(
    session: Session, judged: CTE, limit: int, *conditions: ColumnElement[bool]
) -> list[ScoreShift]:
    """Return the audits that meet the conditions, the largest shifts first."""
    rows = session.execute(
        select(judged)
        .where(judged.c.shift.is_not(None), *conditions)
        .order_by(func.abs(judged.c.shift).desc(), judged.c.id)
        .limit(limit)
    )
    return [
        ScoreShift(
            id=str(row.id),
            custom_id=row.custom_id,
            score_before=row.score_before,
            score_after=row.score_after,
            label_before=row.label_before,
            label_after=row.label_after,
        )
        for row in rows
    ]
