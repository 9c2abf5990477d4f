from __future__ import annotations

import numpy as np
import pytest

from halldetect.claims.decompose import decompose
from halldetect.claims.model import Claim, ClaimOrigin
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.context.library import HYPOTHESIS_TOKENS
from halldetect.errors import InputError, LimitError, ModelError, VerificationError
from halldetect.sources import prepare_source
from halldetect.spans import Span
from halldetect.text.sentences import split_sentences
from halldetect.verification import VerificationInput, hypotheses_of, verify

SOURCES = [
    "The ferry sails at nine. It carries forty cars. The crew is six people. Tickets cost 12 kr.",
    "A heron eats fish.",
    "The kiln was lit in March. Bread was baked in it for a century.\n- It stands in Lund.",
]
RESPONSES = [
    "The ferry sails at ten. The crew is six people. Tickets are free.",
    "A heron eats grain.",
    "Bread was baked in the kiln. The kiln stands in Lund.",
]


def entry(model, source, response):
    claims = decompose(
        response,
        SentenceExtractor(),
        count_tokens=lambda t: len(model.tokenizer.encode([t])[0].ids),
    ).claims
    prepared = prepare_source(source, model, 1_000)
    return VerificationInput(prepared, hypotheses_of(claims, response, model))


def run(model, entries, preselected=None, budget=256, on_pairs=lambda done, total: None):
    return verify(
        model, entries, token_budget=budget, preselected_spans=preselected, on_pairs=on_pairs
    )


def cells(matrix):
    return np.stack([matrix.entailment, matrix.neutral, matrix.contradiction], axis=2)


def expected(model, one):
    library = one.source.library
    rows = [
        [model.probabilities(library.premise(n), ids) for n in range(len(library.spans))]
        for ids in one.hypotheses.tokens
    ]
    return np.array(rows, dtype=np.float32).reshape(-1, len(library.spans), 3)


@pytest.mark.parametrize("budget", [1, 64, 4_096])
def test_every_cell_holds_the_probabilities_of_its_own_pair(marker_model, budget):
    entries = [entry(marker_model, *pair) for pair in zip(SOURCES, RESPONSES, strict=True)]
    for one, matrix in zip(entries, run(marker_model, entries, budget=budget), strict=True):
        np.testing.assert_array_equal(cells(matrix), expected(marker_model, one))


def test_audits_of_one_source_share_its_premises_and_nothing_else(marker_model):
    shared = prepare_source(SOURCES[0], marker_model, 1_000)
    entries = [
        VerificationInput(shared, entry(marker_model, SOURCES[0], response).hypotheses)
        for response in RESPONSES
    ]
    for one, matrix in zip(entries, run(marker_model, entries), strict=True):
        np.testing.assert_array_equal(cells(matrix), expected(marker_model, one))


def test_an_audit_without_claims_has_an_empty_matrix_between_full_ones(marker_model):
    responses = [RESPONSES[0], "Thank you!", RESPONSES[2]]
    entries = [entry(marker_model, *pair) for pair in zip(SOURCES, responses, strict=True)]
    matrices = run(marker_model, entries)
    assert [matrix.n_claims for matrix in matrices] == [3, 0, 2]
    for one, matrix in zip(entries, matrices, strict=True):
        np.testing.assert_array_equal(cells(matrix), expected(marker_model, one))
    assert run(marker_model, []) == []


@pytest.mark.parametrize("preselected", [1, 2, 3])
def test_preselection_skips_cells_and_changes_none(marker_model, preselected):
    entries = [entry(marker_model, *pair) for pair in zip(SOURCES, RESPONSES, strict=True)]
    for one, matrix in zip(entries, run(marker_model, entries, preselected), strict=True):
        found = cells(matrix)
        checked = np.isfinite(found).all(axis=2)
        assert (checked == ~np.isnan(found).any(axis=2)).all()
        spans = len(one.source.library.spans)
        assert (checked.sum(axis=1) >= min(preselected, spans)).all()
        np.testing.assert_array_equal(found[checked], expected(marker_model, one)[checked])


def test_preselection_finds_the_sentence_that_speaks_of_the_claim(marker_model):
    filler = " ".join(f"Room {n} was painted grey." for n in range(40))
    source = f"{filler} The turbine makes 4.1 megawatts. {filler}"
    one = entry(marker_model, source, "The turbine makes 5 megawatts.")
    matrix = run(marker_model, [one], 3)[0]
    chosen = np.flatnonzero(np.isfinite(matrix.entailment[0]))
    assert len(chosen) < matrix.n_spans
    spans = one.source.library.spans
    assert any("turbine" in spans[span].of(source) for span in chosen)


def test_more_preselected_spans_than_there_are_means_all(marker_model):
    one = entry(marker_model, SOURCES[0], RESPONSES[0])
    everything, chosen = run(marker_model, [one])[0], run(marker_model, [one], 1_000)[0]
    np.testing.assert_array_equal(cells(everything), cells(chosen))


def test_progress_counts_every_pair_once(marker_model):
    seen = []
    entries = [entry(marker_model, *pair) for pair in zip(SOURCES, RESPONSES, strict=True)]
    run(marker_model, entries, on_pairs=lambda done, total: seen.append((done, total)))
    total = sum(len(e.hypotheses.tokens) * len(e.source.library.spans) for e in entries)
    assert {whole for _, whole in seen} == {total}
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (total, total)


def test_an_exception_from_a_report_stops_the_encoder_at_once(marker_model):
    class Stopped(Exception):
        pass

    def stop(batch):
        raise Stopped

    entries = [entry(marker_model, *pair) for pair in zip(SOURCES, RESPONSES, strict=True)]
    with pytest.raises(Stopped):
        verify(marker_model, entries, token_budget=64, preselected_spans=None, on_batch=stop)
    assert len(marker_model.calls) == 1


def test_a_claim_that_points_back_is_shown_after_the_sentence_it_points_to(marker_model):
    response = "**Orion** published a report. They said that exports would double."
    first, second = entry(marker_model, SOURCES[0], response).hypotheses.texts
    assert first == "Orion published a report."
    assert second == "Orion published a report. They said that exports would double."


def test_an_antecedent_that_does_not_fit_beside_its_claim_is_left_out(marker_model):
    response = " ".join(f"word{n}" for n in range(60)) + ". It closed."
    start = response.index("It closed")
    claim = Claim(
        text="It closed.",
        span=Span(start, len(response)),
        origin=ClaimOrigin.SENTENCE,
        has_name=False,
        has_number=False,
        has_date=False,
        antecedent=Span(0, start - 1),
    )
    hypotheses = hypotheses_of([claim], response, marker_model)
    assert hypotheses.texts == ("It closed.",)
    assert len(hypotheses.tokens[0]) <= HYPOTHESIS_TOKENS
    ids = marker_model.tokenizer.encode(["It closed."])[0].ids
    np.testing.assert_array_equal(hypotheses.tokens[0], ids)


def test_a_missing_row_is_an_error(make_marker_model):
    model = make_marker_model(lost_rows=1)
    with pytest.raises(VerificationError, match="shape"):
        run(model, [entry(model, *pair) for pair in zip(SOURCES, RESPONSES, strict=True)])


def test_a_number_that_is_none_is_an_error(make_marker_model):
    model = make_marker_model(broken_word="heron")
    with pytest.raises(VerificationError, match="not finite"):
        run(model, [entry(model, *pair) for pair in zip(SOURCES, RESPONSES, strict=True)])


def test_a_source_keeps_its_text_and_digest(marker_model):
    text = "The fare is 12\u00a0000\u202fkr.\r\n It ro\u00adse \u2019twice\u2019."
    prepared = prepare_source(text, marker_model, 10)
    assert prepared.text == text
    assert prepared.sentences == 2
    assert prepared.library.spans[0].of(text).startswith("The fare")


@pytest.mark.parametrize("text", ["\u200b", "\u200b \u200d\u2060"])
def test_a_source_that_the_tokenizer_drops_whole_is_refused(marker_model, text):
    with pytest.raises(InputError, match="can read"):
        prepare_source(text, marker_model, 10)


def test_sentences_that_the_tokenizer_drops_are_counted(marker_model):
    source = "- The ferry sails.\n- \u200b\u2060.\u200b\n- It is late."
    prepared = prepare_source(source, marker_model, 10)
    assert prepared.unreadable_sentences == sum(
        len(marker_model.tokenizer.encode([sentence.span.of(source)])[0].ids) == 0
        for sentence in split_sentences(source)
    )
    assert prepared.sentences == 3
    assert [span for span in prepared.library.spans if span.start == span.end] == []


def test_a_source_with_too_many_sentences_names_the_setting(marker_model):
    with pytest.raises(LimitError, match="HALLDETECT_MAX_SENTENCES"):
        prepare_source("So. " * 11, marker_model, 10)


def test_an_encoder_too_short_for_any_evidence_is_refused(make_marker_model):
    with pytest.raises(ModelError, match="no room for a premise"):
        prepare_source("The ferry sails.", make_marker_model(max_tokens=100), 10)
