from __future__ import annotations

import numpy as np
import pytest

from halldetect.auditor import AuditOptions, Auditor
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.errors import InputError
from halldetect.record import make_record
from halldetect.rescoring import rescore, scoring_input
from halldetect.scoring.policy import BUILTIN_POLICIES, parse_policy
from halldetect.scoring.score import score_audits
from halldetect.trail import AuditResult

RECORDS = [
    make_record(
        source=" ".join(f"Pump {n} was replaced in week {n}." for n in range(count)),
        response=response,
    )
    for count, response in [
        (1, "Pump 0 was replaced."),
        (5, "Pump 3 was replaced in week 4. Pump 9 leaks. They were new."),
        (40, "Pump 12 was replaced in May. The Oslo plant has 40 pumps."),
        (3, "Thank you!"),
    ]
]
CUSTOM = [
    {"claim_value": "contrastive", "aggregation": "mean"},
    {"claim_value": "contradiction", "aggregation": "weighted"},
    {"claim_value": "entailment", "aggregation": "row-max"},
    {"claim_value": "entailment", "aggregation": "min", "granularities": [1, 16]},
]
POLICIES = [
    *BUILTIN_POLICIES.values(),
    *(parse_policy({"name": f"p{n}", **rules}) for n, rules in enumerate(CUSTOM)),
]


def audit(model, record, policy, preselected=None):
    options = AuditOptions(preselected_spans=preselected)
    return Auditor(SentenceExtractor(), model, policy, options).audit(record)


@pytest.mark.parametrize(
    ("policy", "preselected"),
    [(policy, None) for policy in POLICIES]
    # Pre-selection may leave out the finest chunks, which alone row-max reads.
    + [(p, 2) for p in BUILTIN_POLICIES.values() if p.aggregation != "row-max"],
    ids=lambda value: getattr(value, "name", f"preselected-{value}"),
)
@pytest.mark.parametrize("record", RECORDS, ids=["one", "five", "forty", "none"])
def test_a_stored_trail_gives_its_own_score_again(marker_model, record, policy, preselected):
    result = audit(marker_model, record, policy, preselected)
    stored = AuditResult.model_validate_json(result.model_dump_json())
    score = rescore(stored, policy)
    if result.fedscore is None:
        assert score.response_score is None
    else:
        assert score.response_score == pytest.approx(result.fedscore, abs=1e-12)
    assert score.label == result.label
    assert score.deciding_claim == result.deciding_claim
    assert list(score.verdicts) == [claim.verdict for claim in result.claims]
    np.testing.assert_allclose(score.values, [claim.score for claim in result.claims], atol=1e-12)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_another_policy_gives_what_an_audit_under_it_gives(marker_model, policy):
    first = audit(marker_model, RECORDS[2], POLICIES[0])
    second = audit(marker_model, RECORDS[2], policy)
    assert rescore(first, policy).response_score == pytest.approx(second.fedscore, abs=1e-12)


def test_many_trails_are_scored_together_as_each_alone(marker_model):
    results = [audit(marker_model, record, POLICIES[0]) for record in RECORDS]
    together = score_audits([scoring_input(result) for result in results], POLICIES[0])
    for number, result in enumerate(results):
        assert together.audit(number).response_score == rescore(result, POLICIES[0]).response_score


def test_a_failed_audit_has_nothing_to_score(make_marker_model):
    auditor = Auditor(SentenceExtractor(), make_marker_model(lost_rows=1), POLICIES[0])
    failed = next(auditor.audit_many(RECORDS[:1]))
    with pytest.raises(InputError, match=f"{failed.id} failed and has no probabilities: .*shape"):
        rescore(failed, POLICIES[0])
