from __future__ import annotations

import numpy as np
import pytest

from halldetect import auditor as auditor_module
from halldetect.auditor import AuditOptions, Auditor, Stage
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import FinishReason, UnauditedReason
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.errors import HallDetectError, VerificationError
from halldetect.provenance import ModelProvenance
from halldetect.record import make_record
from halldetect.scoring.policy import EMBEDDED, PAPER
from halldetect.trail import AuditResult, Outcome, Status

SOURCE = "The ferry sails at nine. It carries forty cars. The crew is six people."
RECORDS = [
    make_record(custom_id="a", source=SOURCE, response="The ferry sails at ten."),
    make_record(custom_id="b", source="A zebra has stripes.", response="A zebra is plain."),
    make_record(custom_id="c", source=SOURCE, response="Thank you!"),
    make_record(custom_id="d", source=SOURCE, response="The crew is six people. It is good."),
]


class ScriptedExtractor:
    """Answers every call with the same lines."""

    provenance = ModelProvenance("scripted", "llama", "", "", "cpu")

    def __init__(self, output, finish=FinishReason.STOP):
        self.seen = []
        self._extraction = Extraction(output, finish, 10, 5)

    def extract(self, text, max_claims, ends_at):
        self.seen.append(text)
        return self._extraction


def make_auditor(model, extractor=None, policy=PAPER, progress=None, **options):
    extractor = extractor or SentenceExtractor()
    return Auditor(extractor, model, policy, AuditOptions(**options), progress)


def without_id(result):
    return result.model_dump(exclude={"id"})


@pytest.mark.parametrize("load", [1, 2, 256])
def test_a_batch_gives_what_its_audits_give_alone_and_in_order(marker_model, monkeypatch, load):
    monkeypatch.setattr(auditor_module, "_LOAD_AUDITS", load)
    auditor = make_auditor(marker_model)
    alone = [without_id(auditor.audit(record)) for record in RECORDS]
    assert [without_id(result) for result in auditor.audit_many(RECORDS)] == alone


def test_a_full_load_is_handed_out_before_the_next_record_is_read(marker_model, monkeypatch):
    monkeypatch.setattr(auditor_module, "_LOAD_TOKENS", 1)
    taken = []

    def records():
        for record in RECORDS:
            taken.append(record.custom_id)
            yield record

    results = make_auditor(marker_model).audit_many(records())
    assert next(results).custom_id == "a"
    assert taken == ["a"]


def test_every_audit_has_an_id_of_its_own(marker_model):
    results = list(make_auditor(marker_model).audit_many(RECORDS * 2))
    assert len({result.id for result in results}) == len(results)


def test_one_pair_without_a_probability_fails_its_own_audit_only(make_marker_model):
    good = make_marker_model()
    expected = [without_id(make_auditor(good).audit(record)) for record in RECORDS]
    results = list(make_auditor(make_marker_model(broken_word="zebra")).audit_many(RECORDS))
    assert [result.custom_id for result in results] == ["a", "b", "c", "d"]
    assert [result.status for result in results] == [
        *(Status.COMPLETED, Status.FAILED, Status.COMPLETED, Status.COMPLETED)
    ]
    failed = results.pop(1)
    assert "not finite" in failed.error
    assert failed.fedscore is failed.label is failed.matrix is failed.counts is None
    expected.pop(1)
    assert [without_id(result) for result in results] == expected


def test_a_model_that_loses_rows_completes_nothing(make_marker_model):
    model = make_marker_model(lost_rows=1)
    with pytest.raises(VerificationError, match="shape"):
        make_auditor(model).audit(RECORDS[0])
    results = list(make_auditor(model).audit_many(RECORDS))
    # The third asks the encoder nothing: it has no claim.
    assert [result.status for result in results] == [
        *(Status.FAILED, Status.FAILED, Status.COMPLETED, Status.FAILED)
    ]
    assert all(result.matrix is None for result in results if result.error)


@pytest.mark.parametrize(
    ("fields", "options", "reason"),
    [
        ({"source": "\u0301"}, {}, "can read"),
        ({"policy": "mine"}, {}, "no policy is called 'mine'"),
        ({"source": "word " * 60}, {"max_characters": 200}, "source has 300 .*MAX_CHARACTERS"),
        ({"response": "word " * 60}, {"max_characters": 200}, "response has 300 .*MAX_CHARACTERS"),
        ({"source": "Yes. " * 9}, {"max_sentences": 8}, "HALLDETECT_MAX_SENTENCES"),
        ({"response": "Yes. " * 9}, {"max_sentences": 8}, "HALLDETECT_MAX_SENTENCES"),
    ],
)
def test_a_record_that_cannot_be_audited_fails_alone_with_its_reason(
    marker_model, fields, options, reason
):
    bad = RECORDS[0].model_copy(update={"custom_id": "bad", **fields})
    auditor = make_auditor(marker_model, **options)
    with pytest.raises(HallDetectError, match=reason):
        auditor.audit(bad)
    results = list(auditor.audit_many([RECORDS[0], bad, RECORDS[3]]))
    assert [result.status for result in results] == [
        *(Status.COMPLETED, Status.FAILED, Status.COMPLETED)
    ]
    assert results[1].custom_id == "bad"


def test_a_record_is_scored_under_its_own_policy(marker_model):
    record = RECORDS[0].model_copy(update={"policy": "embedded"})
    result = make_auditor(marker_model, policy=PAPER).audit(record)
    assert (result.policy.name, result.policy.version) == ("embedded", EMBEDDED.version)


def test_a_failed_audit_names_the_policy_that_it_asked_for(make_marker_model):
    record = RECORDS[1].model_copy(update={"policy": "embedded"})
    auditor = make_auditor(make_marker_model(broken_word="zebra"), policy=PAPER)
    assert next(auditor.audit_many([record])).policy.name == "embedded"


@pytest.mark.parametrize("response", ["", " \n\t", "\u200b", "Thank you!", "...", "- \n* \n1."])
def test_a_response_without_an_assertion_has_no_number_anywhere(marker_model, response):
    result = make_auditor(marker_model).audit(make_record(source=SOURCE, response=response))
    assert result.status is Status.COMPLETED
    assert result.outcome is Outcome.NO_CHECKABLE_CLAIMS
    assert result.fedscore is result.label is result.deciding_claim is None
    assert result.claims == []
    left = "".join(sentence.text for sentence in result.unaudited)
    assert "".join(left.split()) == "".join(response.split())
    assert marker_model.calls == []


def test_every_piece_of_evidence_stands_where_it_says(marker_model):
    record = RECORDS[3]
    result = make_auditor(marker_model).audit(record)
    matrix = result.matrix
    spans = [(span.start, span.end) for span in matrix.spans]
    for number, claim in enumerate(result.claims):
        rows = ((claim.entailment, matrix.entailment), (claim.contradiction, matrix.contradiction))
        for evidence, values in rows:
            assert evidence.text == record.source[evidence.span.start : evidence.span.end]
            column = spans.index((evidence.span.start, evidence.span.end))
            assert values[number][column] == evidence.probability == max(values[number])
        assert record.response[claim.span.start : claim.span.end].strip() == claim.text


def test_the_extractor_never_sees_the_source(marker_model):
    extractor = ScriptedExtractor("- The ferry sails at ten.")
    make_auditor(marker_model, extractor).audit(RECORDS[0])
    assert extractor.seen
    assert not any("forty" in text for text in extractor.seen)


@pytest.mark.parametrize(
    ("output", "finish"),
    [
        ("- The ferry sails at ten.\n" * 8, FinishReason.REPETITION),
        ("- The ferry sails at ten.\n- It has 1", FinishReason.LENGTH),
        ("- Marie Curie won two prizes.", FinishReason.STOP),
        ("\ufffd\ufffd{{{", FinishReason.STOP),
        ("", FinishReason.STOP),
    ],
)
def test_whatever_the_extractor_says_each_sentence_is_audited_once(marker_model, output, finish):
    response = "The ferry sails at ten. It has 191 seats."
    auditor = make_auditor(marker_model, ScriptedExtractor(output, finish))
    result = auditor.audit(make_record(source=SOURCE, response=response))
    assert [claim.text.rstrip(".") for claim in result.claims] == [
        *("The ferry sails at ten", "It has 191 seats")
    ]
    assert [call.finish for call in result.generations] == [finish]


def test_what_was_not_extracted_in_paper_mode_is_listed(marker_model):
    extractor = ScriptedExtractor("- The ferry sails at ten.")
    auditor = make_auditor(marker_model, extractor, mode=auditor_module.ExtractionMode.PAPER)
    response = "The ferry sails at ten. It has 191 seats."
    result = auditor.audit(make_record(source=SOURCE, response=response))
    assert len(result.claims) == 1
    assert [(left.text, left.reason) for left in result.unaudited] == [
        ("It has 191 seats.", UnauditedReason.NOT_EXTRACTED)
    ]


def test_preselection_is_seen_in_the_trail(marker_model):
    source = " ".join(f"Pump {n} was replaced in week {n}." for n in range(30))
    record = make_record(source=source, response="Pump 7 was replaced in week 9.")
    whole = make_auditor(marker_model).audit(record)
    part = make_auditor(marker_model, preselected_spans=4).audit(record)
    assert whole.claims[0].checked_spans == len(whole.matrix.spans)
    assert 4 <= part.claims[0].checked_spans < len(part.matrix.spans)
    row, full = part.matrix.entailment[0], whole.matrix.entailment[0]
    assert sum(cell is not None for cell in row) == part.claims[0].checked_spans
    assert all(cell in (None, other) for cell, other in zip(row, full, strict=True))


def test_the_trail_comes_back_from_json_unchanged(marker_model):
    record = RECORDS[3].model_copy(update={"metadata": {"k": [1, None, {"a": "é"}]}})
    result = make_auditor(marker_model, preselected_spans=2).audit(record)
    again = AuditResult.model_validate_json(result.model_dump_json())
    assert again == result
    values = np.array(again.matrix.entailment, dtype=np.float64)
    finite = values[np.isfinite(values)]
    np.testing.assert_array_equal(finite.astype(np.float32).astype(np.float64), np.float32(finite))


def test_a_shared_source_is_prepared_once(marker_model, monkeypatch):
    prepared = []
    original = auditor_module.prepare_source

    def counting(text, *rest):
        prepared.append(text)
        return original(text, *rest)

    monkeypatch.setattr(auditor_module, "prepare_source", counting)
    list(make_auditor(marker_model).audit_many(RECORDS))
    assert prepared == [SOURCE, RECORDS[1].source]


def test_progress_counts_audits_and_pairs(marker_model):
    seen = []
    list(make_auditor(marker_model, progress=seen.append).audit_many(RECORDS))
    extracted = [step.done for step in seen if step.stage is Stage.EXTRACTION]
    verified = [step for step in seen if step.stage is Stage.VERIFICATION]
    assert extracted == [1, 2, 3, 4]
    assert verified[-1].done == verified[-1].total > 0


def test_a_claim_that_the_encoder_cannot_read_is_a_warning(marker_model):
    auditor = Auditor(SentenceExtractor(), marker_model, PAPER)
    result = auditor.audit(make_record(source="The mill opened.", response="ห้องสมุดเปิดแปดโมง"))
    assert any("unknown to the NLI model" in warning for warning in result.warnings)
