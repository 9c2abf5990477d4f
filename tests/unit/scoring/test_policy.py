import pytest
from pydantic import ValidationError

from halldetect.errors import PolicyError
from halldetect.scoring.policy import (
    BUILTIN_POLICIES,
    EMBEDDED,
    PAPER,
    Aggregation,
    ClaimValue,
    Policy,
    parse_policy,
    policy_named,
)

PLAIN = {"name": "plain", "claim_value": "entailment", "aggregation": "mean"}


def test_paper_is_the_published_rule():
    assert PAPER.model_dump(mode="json") == {
        "name": "paper",
        "claim_value": "contrastive",
        "aggregation": "fedscore",
        "granularities": None,
        "margin": 0.0,
        "entailment_threshold": 0.5,
        "contradiction_threshold": 0.5,
        "response_threshold": 0.5,
    }


def test_a_policy_survives_json():
    policy = parse_policy({**PLAIN, "granularities": [8, 1, 8], "margin": 0.1})
    assert policy.granularities == (1, 8)
    again = parse_policy(policy.model_dump(mode="json"))
    assert again == policy
    assert again.version == policy.version


def test_a_policy_cannot_be_changed():
    with pytest.raises(ValidationError):
        PAPER.margin = 0.5


def test_the_version_follows_the_content_and_not_the_name_or_notation():
    policy = parse_policy({**PLAIN, "granularities": [1, 2]})
    same = parse_policy({**PLAIN, "name": "other", "granularities": [2, 1, 1], "margin": -0.0})
    integer = parse_policy({**PLAIN, "granularities": (1, 2), "margin": 0})
    assert policy.version == same.version == integer.version
    assert len(policy.version) == 16


def test_the_version_is_the_same_in_every_process():
    assert PAPER.version == "fd26f517b201348a"


@pytest.mark.parametrize(
    "change",
    [
        {"claim_value": "contradiction"},
        {"aggregation": "min"},
        {"granularities": [1]},
        {"margin": 0.25},
        {"entailment_threshold": 0.25},
        {"contradiction_threshold": 0.25},
        {"response_threshold": 0.25},
    ],
)
def test_every_rule_changes_the_version(change):
    assert parse_policy({**PLAIN, **change}).version != parse_policy(PLAIN).version


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": ""}, "name"),
        ({"name": "two words"}, "name"),
        ({"name": 7}, "name"),
        ({"claim_value": "neutral"}, "claim_value"),
        ({"aggregation": "median"}, "aggregation"),
        ({"granularities": []}, "granularities"),
        ({"granularities": [0]}, "granularities"),
        ({"granularities": [-2]}, "granularities"),
        ({"granularities": [3]}, "powers of two, not 3"),
        ({"granularities": [1, 6, 12]}, "powers of two, not 6, 12"),
        ({"granularities": [2.0]}, "granularities"),
        ({"granularities": [True]}, "granularities"),
        ({"granularities": [2**32]}, "granularities.0"),
        ({"granularities": [1] * 65}, "granularities"),
        ({"margin": 1}, "margin"),
        ({"margin": -0.01}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"margin": "0.1"}, "margin"),
        ({"margin": True}, "margin"),
        ({"entailment_threshold": 1.01}, "entailment_threshold"),
        ({"contradiction_threshold": -1}, "contradiction_threshold"),
        ({"response_threshold": float("inf")}, "response_threshold"),
        ({"response_threshold": None}, "response_threshold"),
        ({"treshold": 0.5}, "treshold"),
        ({"aggregation": "row-max", "claim_value": "contrastive"}, "claim_value: row-max"),
        ({"aggregation": "row-max", "granularities": [16]}, "granularities: row-max"),
    ],
)
def test_a_fault_is_named(change, fault):
    with pytest.raises(PolicyError) as caught:
        parse_policy({**PLAIN, **change})
    assert fault in str(caught.value)


@pytest.mark.parametrize("missing", sorted(PLAIN))
def test_a_missing_field_is_named(missing):
    with pytest.raises(PolicyError, match=f"{missing}: Field required"):
        parse_policy({key: value for key, value in PLAIN.items() if key != missing})


def test_all_faults_come_in_one_message():
    with pytest.raises(PolicyError) as caught:
        parse_policy(
            {
                "claim_value": "contrastive",
                "aggregation": "row-max",
                "granularities": [5],
                "margin": 2,
                "entailment_threshold": "high",
                "colour": "red",
            }
        )
    message = str(caught.value)
    for part in (
        "name: Field required",
        "granularities: Value error, must be positive powers of two, not 5",
        "margin",
        "(got 2)",
        "entailment_threshold",
        "colour",
        "claim_value: row-max",
        "granularities: row-max",
    ):
        assert part in message


def test_faults_between_fields_are_listed_once():
    with pytest.raises(PolicyError) as caught:
        parse_policy({"name": "r", "claim_value": "contradiction", "aggregation": "row-max"})
    assert str(caught.value).count("row-max") == 1


def test_fields_that_contradict_each_other_never_make_a_policy():
    with pytest.raises(ValidationError):
        Policy(name="r", claim_value=ClaimValue.CONTRASTIVE, aggregation=Aggregation.ROW_MAX)


@pytest.mark.parametrize("not_an_object", [None, "paper", ["paper"], 3])
def test_what_is_no_object_is_no_policy(not_an_object):
    with pytest.raises(PolicyError, match="object of named fields"):
        parse_policy(not_an_object)


def test_policies_are_found_by_name():
    assert policy_named("paper") is PAPER
    assert policy_named("embedded") is EMBEDDED
    assert set(BUILTIN_POLICIES) == {"paper", "embedded", "mean", "row-max"}
    assert all(policy_named(name).name == name for name in BUILTIN_POLICIES)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(PolicyError, match="'papier'; there are: embedded, mean, paper, row-max"):
        policy_named("papier")


def test_a_policy_says_what_it_reads_beside_probabilities():
    weighted = parse_policy({**PLAIN, "aggregation": "weighted"})
    coarse = parse_policy({**PLAIN, "granularities": [1]})
    row_max = BUILTIN_POLICIES["row-max"]
    assert [policy.reads_flags for policy in (weighted, coarse, row_max)] == [True, False, False]
    assert [policy.reads_chunks for policy in (weighted, coarse, row_max)] == [False, True, True]
