"""What a policy changes, counted against the rows themselves."""

from __future__ import annotations

import json

import pytest
from rescored_audits import make_policy, request_rescoring, rescore
from sqlalchemy import select, text

from db.comparison import compare
from db.models import Audit, RescoringState
from db.policies import get_policy
from db.rescorings import get_rescoring
from halldetect.scoring.verdict import Label, Verdict

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks. A dragon lives in it."


@pytest.fixture
def audits(service, sessions):
    service.submit(TRUE, FALSE, "Thanks!", f"{TRUE} {FALSE}", FALSE)
    service.submit(TRUE, policy="paper")
    service.run()
    with sessions.begin() as session:
        return list(session.scalars(select(Audit).order_by(Audit.id)))


@pytest.fixture
def policy(sessions):
    """Everything is faithful under it, and nothing is contradicted."""
    with sessions.begin() as session:
        return make_policy(session, "lenient", response_threshold=1.0, contradiction_threshold=1.0)


@pytest.fixture
def report(sessions):
    def read(rescoring, against=None, examples=10):
        with sessions.begin() as session:
            other = None if against is None else get_policy(session, against)
            return compare(session, rescoring, other, examples=examples)

    return read


def flagged(audits):
    return [audit for audit in audits if audit.label is Label.HALLUCINATED]


def test_labels_that_flip_are_counted_by_direction_and_shown(
    engine, sessions, audits, policy, report
):
    found = report(rescore(engine, sessions, policy))
    assert (found.policy.name, found.against) == ("lenient", None)
    assert found.state is RescoringState.COMPLETED
    assert (found.selected, found.compared) == (6, 5)
    assert (found.no_checkable_claims, found.unscored) == (1, 0)
    assert found.labels.to_faithful == len(flagged(audits)) > 0
    assert found.labels.stay_faithful == 5 - len(flagged(audits))
    assert found.labels.to_hallucinated == found.labels.stay_hallucinated == 0
    assert found.to_hallucinated == []
    assert {shift.id for shift in found.to_faithful} == {str(a.id) for a in flagged(audits)}
    shifts = [abs(shift.score_after - shift.score_before) for shift in found.largest_shifts]
    assert shifts == sorted(shifts, reverse=True)
    assert found.largest_shifts[0].custom_id is not None


def test_means_are_over_the_audits_that_have_a_score(engine, sessions, audits, policy, report):
    found = report(rescore(engine, sessions, policy))
    before = [audit.fedscore for audit in audits if audit.fedscore is not None]
    with sessions.begin() as session:
        after = list(session.scalars(text("SELECT response_score FROM halldetect.scorings")))
    after = [score for score in after if score is not None]
    assert found.mean_before == pytest.approx(sum(before) / 5, abs=1e-12)
    assert found.mean_after == pytest.approx(sum(after) / 5, abs=1e-12)


def test_claims_are_counted_by_every_pair_of_verdicts(engine, sessions, audits, policy, report):
    found = report(rescore(engine, sessions, policy))
    assert [(one.before, one.after) for one in found.verdicts] == [
        (before, after) for before in Verdict for after in Verdict
    ]
    for verdict in Verdict:
        before = sum(one.claims for one in found.verdicts if one.before is verdict)
        assert before == sum(getattr(audit, verdict.value) for audit in audits)
    assert sum(one.claims for one in found.verdicts if one.after is Verdict.CONTRADICTED) == 0


def test_a_policy_is_compared_with_another_as_well(engine, sessions, audits, policy, report):
    """One audit has `paper` as its own policy, the others a scoring of it."""
    with sessions.begin() as session:
        paper = get_policy(session, "paper")
    first = rescore(engine, sessions, paper)
    assert (first.scored, first.present) == (5, 1)
    found = report(rescore(engine, sessions, policy), against="paper")
    assert found.against.name == "paper"
    assert (found.compared, found.unscored) == (5, 0)
    turned = report(first, against="lenient")
    assert turned.labels.to_hallucinated == found.labels.to_faithful
    assert turned.labels.to_faithful == found.labels.to_hallucinated
    assert turned.mean_before == found.mean_after
    forth = {(one.before, one.after): one.claims for one in found.verdicts}
    back = {(one.after, one.before): one.claims for one in turned.verdicts}
    assert forth == back


def test_a_policy_changes_nothing_against_itself(engine, sessions, audits, policy, report):
    found = report(rescore(engine, sessions, policy), against="lenient")
    assert found.labels.to_faithful == found.labels.to_hallucinated == 0
    assert found.largest_shifts == []
    assert all(one.claims == 0 for one in found.verdicts if one.before is not one.after)


def test_audits_without_one_of_the_scores_are_counted_apart(
    sessions, engine, audits, policy, report
):
    waiting_id = request_rescoring(sessions, policy)
    with sessions.begin() as session:
        waiting = get_rescoring(session, waiting_id)
    found = report(waiting)
    assert found.state is RescoringState.WAITING
    assert (found.selected, found.compared, found.unscored) == (6, 0, 5)
    assert (found.mean_before, found.mean_after) == (None, None)
    rescore(engine, sessions, policy, ids=(1,))
    assert report(waiting).compared == 1


def test_only_the_selection_is_compared(engine, sessions, audits, policy, report):
    rescore(engine, sessions, policy)
    done = rescore(engine, sessions, policy, ids=(1, 2))
    assert report(done).selected == 2


def test_examples_are_as_many_as_asked_for(engine, sessions, audits, policy, report):
    done = rescore(engine, sessions, policy)
    assert len(report(done, examples=1).to_faithful) == 1
    assert report(done, examples=0).largest_shifts == []


def test_a_report_is_json(engine, sessions, audits, policy, report):
    found = report(rescore(engine, sessions, policy))
    assert json.loads(found.model_dump_json())["labels"]["to_faithful"] == len(flagged(audits))
