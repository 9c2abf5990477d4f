import pytest

from cli.demo_command import Finding, finding_of, load_cases
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import TextSpan

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_text_is_of_the_promised_kind(case):
    assert 200 <= len(case.source.split()) <= 350
    assert case.planted is None or case.response.count(case.planted) == 1
    assert case.planted is None or case.planted not in case.source


def test_there_is_one_of_each_kind():
    assert [case.expected for case in CASES] == [
        Verdict.SUPPORTED,
        Verdict.CONTRADICTED,
        Verdict.UNSUPPORTED,
    ]


@pytest.mark.parametrize(
    ("index", "label", "verdicts", "agrees"),
    [
        (0, Label.FAITHFUL, [Verdict.SUPPORTED] * 3, True),
        (0, Label.FAITHFUL, [Verdict.SUPPORTED, Verdict.UNSUPPORTED], False),
        (0, Label.HALLUCINATED, [Verdict.SUPPORTED], False),
        (0, None, [], False),
        (1, Label.HALLUCINATED, [Verdict.CONTRADICTED], True),
        (1, Label.HALLUCINATED, [Verdict.SUPPORTED, Verdict.CONTRADICTED], True),
        (1, Label.HALLUCINATED, [Verdict.UNSUPPORTED], False),
        (1, Label.FAITHFUL, [Verdict.CONTRADICTED], False),
        (2, Label.HALLUCINATED, [], False),
    ],
)
def test_a_finding_is_right_only_with_the_label_and_the_planted_claim(
    index, label, verdicts, agrees
):
    assert Finding(label, tuple(verdicts)).agrees_with(CASES[index]) is agrees


def test_only_claims_from_the_planted_words_count(make_result, make_claim):
    case = CASES[1]
    start = case.response.index(case.planted)
    end = start + len(case.planted)
    claims = [
        make_claim(span=TextSpan(start=0, end=start)),
        make_claim(verdict=Verdict.CONTRADICTED, span=TextSpan(start=start + 3, end=end - 3)),
        make_claim(span=TextSpan(start=end, end=end + 5)),
    ]
    assert finding_of(case, make_result(claims)).verdicts == (Verdict.CONTRADICTED,)
