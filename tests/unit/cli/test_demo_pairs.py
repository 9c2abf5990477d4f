from collections import Counter
from pathlib import Path

import pytest

from cli.demo_pairs import PAIRS_FILE, Finding, count_of, findings, load_pairs, most_telling
from halldetect.record import jsonl_lines, parse_record
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome, TextSpan

PAIRS = load_pairs()
RECORDS = [
    parse_record(line, unknown_fields="refuse")
    for _, line in jsonl_lines(PAIRS_FILE.read_bytes().splitlines(keepends=True))
]
PLANTED = [pair for pair in PAIRS if pair.planted is not None]


def test_there_are_enough_pairs_of_each_kind():
    assert len(PAIRS) == len(RECORDS) >= 24
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)
    assert len({pair.topic for pair in PAIRS}) >= 10
    assert 0.4 <= len(PLANTED) / len(PAIRS) <= 0.6
    kinds = Counter(pair.fault for pair in PLANTED)
    assert {"changed number", "swapped name", "invented addition", "negation"} <= kinds.keys()
    assert sum(pair.expected == Outcome.NO_CHECKABLE_CLAIMS for pair in PAIRS) == 1
    assert any(not record.source.isascii() for record in RECORDS)
    assert any(not record.response.isascii() for record in RECORDS)


def test_documents_repeat():
    assert len({record.source for record in RECORDS}) <= len(RECORDS) / 2


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.custom_id)
def test_each_source_is_of_the_promised_length(record):
    assert 80 <= len(record.source.split()) <= 350


@pytest.mark.parametrize("pair", PLANTED, ids=lambda pair: pair.name)
def test_what_is_planted_is_in_the_answer_and_not_in_the_source(pair):
    source = RECORDS[PAIRS.index(pair)].source
    assert pair.response.count(pair.planted) == 1
    assert pair.planted not in source
    assert pair.expected == Label.HALLUCINATED
    assert pair.fault


def test_what_has_nothing_planted_is_not_expected_to_be_flagged():
    expected = {pair.expected for pair in PAIRS if pair.planted is None}
    assert expected == {Label.FAITHFUL, Outcome.NO_CHECKABLE_CLAIMS}


@pytest.mark.parametrize("name", ["ferry", "library", "pump"])
def test_the_texts_for_a_single_audit_are_among_the_pairs(name):
    record = next(record for record in RECORDS if record.custom_id == name)
    folder = Path(PAIRS_FILE).parent
    assert record.source == (folder / f"{name}.source.txt").read_text(encoding="utf-8")
    assert record.response == (folder / f"{name}.response.txt").read_text(encoding="utf-8")


@pytest.fixture
def ferry():
    return next(pair for pair in PAIRS if pair.name == "ferry")


@pytest.fixture
def claims_of(ferry, make_claim):
    """Claims before, in and after the planted words, with the given verdicts."""

    def make(before, planted, after):
        start = ferry.response.index(ferry.planted)
        end = start + len(ferry.planted)
        return [
            make_claim(verdict=before, span=TextSpan(start=0, end=start)),
            make_claim(verdict=planted, span=TextSpan(start=start + 3, end=end - 3)),
            make_claim(verdict=after, span=TextSpan(start=end, end=end + 5)),
        ]

    return make


def test_only_the_verdict_on_the_planted_words_counts(ferry, claims_of, make_result):
    claims = claims_of(Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
    finding = Finding(ferry, make_result(claims, label=Label.HALLUCINATED))
    assert finding.caught is Verdict.UNSUPPORTED
    assert finding.is_right


def test_the_worst_verdict_on_the_planted_words_counts(ferry, claims_of, make_result):
    claims = claims_of(Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.SUPPORTED)
    claims += claims_of(Verdict.SUPPORTED, Verdict.SUPPORTED, Verdict.SUPPORTED)
    assert Finding(ferry, make_result(claims)).caught is Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("name", "label", "is_right"),
    [
        ("ferry", Label.HALLUCINATED, True),
        ("ferry", Label.FAITHFUL, False),
        ("library", Label.FAITHFUL, True),
        ("library", Label.HALLUCINATED, False),
        ("bridge-thanks", Label.FAITHFUL, False),
    ],
)
def test_a_finding_is_right_when_the_label_is(make_result, name, label, is_right):
    pair = next(pair for pair in PAIRS if pair.name == name)
    assert Finding(pair, make_result(label=label)).is_right is is_right


def test_no_checkable_claims_is_what_can_be_found_too(make_result):
    pair = next(pair for pair in PAIRS if pair.expected == Outcome.NO_CHECKABLE_CLAIMS)
    result = make_result([], label=None, fedscore=None, outcome=Outcome.NO_CHECKABLE_CLAIMS)
    finding = Finding(pair, result)
    assert finding.is_right
    assert finding.caught is None


def test_the_trail_worth_reading_has_its_planted_words_contradicted(ferry, claims_of, make_result):
    def finding(verdict, label):
        claims = claims_of(Verdict.SUPPORTED, verdict, Verdict.SUPPORTED)
        return Finding(ferry, make_result(claims, label=label))

    missed = finding(Verdict.SUPPORTED, Label.FAITHFUL)
    unsupported = finding(Verdict.UNSUPPORTED, Label.HALLUCINATED)
    contradicted = finding(Verdict.CONTRADICTED, Label.HALLUCINATED)
    assert most_telling([missed, unsupported, contradicted]) is contradicted
    assert most_telling([missed, unsupported]) is unsupported
    assert most_telling([missed]) is missed


def test_every_pair_needs_its_result(make_result):
    with pytest.raises(ValueError, match="zip"):
        findings(PAIRS, [make_result()])
    found = findings(PAIRS, [make_result()] * len(PAIRS))
    assert count_of(found, Label.HALLUCINATED) == len(PLANTED)
