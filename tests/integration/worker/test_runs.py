"""Runs of both stages against real servers: what is stored, and what becomes of faults."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from db.audits import stream_results
from db.line import Stage
from halldetect.auditor import Auditor
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.record import make_record
from halldetect.scoring.policy import EMBEDDED
from halldetect.trail import Status
from queues.names import Queue
from worker.run import Ended

RESPONSES = [
    "The mill opened in 1900. It closed in 1951.",
    "Thank you!",
    "Nobody was hurt. The fire broke out at night. They left.",
    "The mill opened in 1850.",
]
# What only the service knows of an audit.
OWN_FIELDS = {"id", "response", "context", "batch_id", "line", "priority", "attempts"} | {
    "submitted_at",
    "extracted_at",
    "finished_at",
}


def run_both(process):
    return [process.run(stage) for stage in Stage]


def test_results_are_those_of_the_auditor(start_worker, submit, sessions, auditor):
    batch = submit(*RESPONSES)
    summaries = run_both(start_worker("extraction", "nli"))
    assert [(s.audits, s.ended) for s in summaries] == [(4, Ended.NOTHING_LEFT)] * 2
    with sessions.begin() as session:
        stored = list(stream_results(session, batch, with_matrix=True))
    source = stored[0].document.sha256
    in_process = Auditor(SentenceExtractor(), auditor.nli, EMBEDDED)
    for response, found in zip(RESPONSES, stored, strict=True):
        record = make_record(
            source="The mill opened in 1900. It closed in 1950 after a fire. Nobody was hurt.",
            response=response,
            custom_id=found.custom_id,
        )
        expected = in_process.audit(record)
        assert found.status is Status.COMPLETED
        assert found.document.sha256 == source
        assert plain(found.model_dump(exclude=OWN_FIELDS)) == approximately(
            expected.model_dump(exclude={"id"})
        )


def plain(value):
    """Leave out the ids of claims, which the method itself does not give."""
    return {**value, "claims": [{k: v for k, v in c.items() if k != "id"} for c in value["claims"]]}


def approximately(value):
    """Compare numbers to 1e-5 and all else exactly."""
    if isinstance(value, dict):
        return {name: approximately(part) for name, part in value.items()}
    if isinstance(value, list):
        return [approximately(part) for part in value]
    return pytest.approx(value, abs=1e-5) if isinstance(value, float) else value


def test_audits_of_one_source_are_counted_together(start_worker, submit, rows):
    submit(*RESPONSES)
    process = start_worker("extraction", "nli")
    run_both(process)
    [(pairs,)] = rows("SELECT sum(cardinality(entailment)) FROM halldetect.probabilities")
    counters = process._counters.total()
    assert counters.pairs == pairs
    assert counters.audits == 2 * len(RESPONSES)  # over both stages
    assert counters.tokens <= counters.padded_tokens <= counters.budget_tokens
    assert counters.batches * 2048 == counters.budget_tokens
    assert rows("SELECT count(*) FROM halldetect.span_tables") == [(1,)]


def test_wake_ups_too_many_find_nothing_to_do(start_worker, submit, states):
    submit(*RESPONSES)
    process = start_worker("extraction", "nli")
    run_both(process)
    before = states()
    for summary in run_both(process):
        assert (summary.loads, summary.audits, summary.ended) == (0, 0, Ended.NOTHING_LEFT)
    assert states() == before == [("completed", 2, 0)] * 4


def test_a_source_that_cannot_be_read_fails_its_own_audits_only(start_worker, submit, rows):
    submit("The mill opened.", single=True)
    submit("The mill opened.", source="\u0301", single=True)
    submit("The mill opened.", source="A heron eats fish.", single=True)
    run_both(start_worker("extraction", "nli"))
    found = rows("SELECT status, faults, error FROM halldetect.audits ORDER BY id")
    assert [status for status, _, _ in found] == ["completed", "failed", "completed"]
    assert "nothing that the NLI model's tokenizer can read" in found[1][2]


def test_a_response_over_the_limit_fails_at_once(start_worker, submit, rows):
    submit("The mill opened. " * 20, "The mill opened.")
    start_worker("extraction", max_sentences=10).run(Stage.EXTRACTION)
    (failed, extracted) = rows("SELECT status, error FROM halldetect.audits ORDER BY id")
    assert failed[0] == "failed"
    assert "HALLDETECT_MAX_SENTENCES" in failed[1]
    assert extracted == ("extracted", None)


def test_a_number_that_is_none_fails_the_audit_it_belongs_to(
    start_worker, submit, rows, encoder, monkeypatch
):
    submit("The mill opened in 1900.", "A heron saw it.", "Nobody was hurt.")
    whole = encoder.logits

    def logits(batch):
        found = whole(batch)
        (heron,) = encoder.tokenizer.encode(["heron"])[0].ids
        found[(batch.input_ids == heron).any(axis=1)] = np.nan
        return found

    monkeypatch.setattr(encoder, "logits", logits)
    run_both(start_worker("extraction", "nli"))
    found = rows("SELECT status, error FROM halldetect.audits ORDER BY id")
    assert [status for status, _ in found] == ["completed", "failed", "completed"]
    # The span and the claim of this very audit, whatever shared its batch.
    assert "not finite for pair 2 (premise 2, hypothesis 0)" in found[1][1]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_an_encoder_that_gives_no_numbers_any_more_blames_no_audit(
    start_worker, submit, rows, encoder, monkeypatch, number
):
    submit("The mill opened in 1900.", "Nobody was hurt.")
    process = start_worker("extraction", "nli", lease_seconds=3600)
    process.run(Stage.EXTRACTION)
    whole = encoder.logits
    monkeypatch.setattr(encoder, "logits", lambda batch: np.full_like(whole(batch), number))
    summary = process.run(Stage.VERIFICATION)
    assert (summary.ended, summary.audits) == (Ended.MODEL_BROKEN, 0)
    assert "not finite" in summary.error
    assert rows("SELECT DISTINCT status, error FROM halldetect.audits") == [("extracted", None)]


def test_an_error_nobody_foresaw_is_tried_again_until_the_cap(
    start_worker, submit, rows, encoder, wake_ups
):
    submit("The mill opened in 1900.", "A heron saw it.", "Nobody was hurt.")

    def fail_on_heron(batch):
        if encoder.has_word(batch, "heron"):
            raise RuntimeError("unforeseen")

    encoder.before = fail_on_heron
    process = start_worker("extraction", "nli", max_attempts=2)
    run_both(process)
    statement = "SELECT status, faults, error FROM halldetect.audits ORDER BY id"
    assert rows(statement) == [
        ("completed", 0, None),
        ("extracted", 1, None),
        ("completed", 0, None),
    ]
    assert wake_ups.queued(Queue.NLI) == 1  # to try again
    process.run(Stage.VERIFICATION)
    assert rows(statement)[1] == (
        "failed",
        2,
        "failed 2 times, lastly: RuntimeError: unforeseen",
    )


def test_an_error_of_the_extractor_is_its_own_audits_only(start_worker, submit, rows, extractor):
    submit("The mill opened in 1900.", "A heron saw it.", "Nobody was hurt.")

    def fail_on_heron(window):
        if "heron" in window:
            raise RuntimeError("unforeseen")

    extractor.before = fail_on_heron
    start_worker("extraction", max_attempts=1).run(Stage.EXTRACTION)
    found = rows("SELECT status, error FROM halldetect.audits ORDER BY id")
    assert [status for status, _ in found] == ["extracted", "failed", "extracted"]
    assert found[1][1] == "failed 1 time, lastly: RuntimeError: unforeseen"


@pytest.mark.parametrize("stage", list(Stage))
def test_a_model_that_is_broken_blames_no_audit(
    start_worker, submit, states, worker_rows, rows, encoder, extractor, stage
):
    submit("The mill opened in 1900.", "Nobody was hurt.")
    process = start_worker("extraction", "nli", lease_seconds=3600)
    if stage is Stage.VERIFICATION:
        process.run(Stage.EXTRACTION)

    def fail(_):
        raise RuntimeError("the device is gone")

    encoder.before = extractor.before = fail
    summary = process.run(stage)
    assert (summary.ended, summary.audits) == (Ended.MODEL_BROKEN, 0)
    assert summary.error == "the device is gone"
    assert {(status, faults) for status, _, faults in states()} == {(stage.awaited_in.value, 0)}
    # Those at hand are left to expire, as if the worker was lost; so each is tried alone next.
    begun = 2 if stage is Stage.VERIFICATION else 1
    assert rows("SELECT count(*) FROM halldetect.audits WHERE lease_owner IS NOT NULL") == [
        (begun,)
    ]


def test_more_work_than_one_load_is_done_in_one_run(start_worker, submit, states):
    submit(*[f"The mill opened in {1900 + n}." for n in range(9)])
    process = start_worker("extraction", "nli", load_audits=2, extraction_load_audits=2)
    assert [summary.loads for summary in run_both(process)] == [5, 5]
    assert states() == [("completed", 2, 0)] * 9


def test_extraction_wakes_verification(start_worker, submit, wake_ups):
    submit(*[f"The mill opened in {1900 + n}." for n in range(9)])
    start_worker("extraction", extraction_load_audits=2).run(Stage.EXTRACTION)
    assert wake_ups.queued(Queue.NLI) == 1


def test_a_run_whose_time_is_up_hands_back_and_names_a_successor(
    start_worker, submit, states, nothing_is_held, wake_ups, encoder, monkeypatch
):
    submit(*[f"The mill opened in {1900 + n}." for n in range(6)])
    process = start_worker("extraction", "nli", load_audits=2, run_seconds=1)
    process.run(Stage.EXTRACTION)
    ends = iter([False, True])
    monkeypatch.setattr("worker.run.BoundedRun._is_time_up", lambda run: next(ends, True))
    summary = process.run(Stage.VERIFICATION)
    assert (summary.loads, summary.audits, summary.ended) == (1, 2, Ended.TIME_IS_UP)
    assert nothing_is_held()
    assert states() == [("completed", 2, 0)] * 2 + [("extracted", 1, 0)] * 4
    assert wake_ups.queued(Queue.NLI) == 1


def test_an_extractor_that_does_not_come_back_ends_the_process(
    start_worker, submit, extractor, monkeypatch
):
    codes = []
    is_ended = threading.Event()

    def end(code):
        codes.append(code)
        is_ended.set()

    monkeypatch.setattr("worker.watchdog.os._exit", end)
    monkeypatch.setattr("worker.watchdog.HUNG_SECONDS", 0.01)
    submit("The mill opened in 1900.")
    extractor.before = lambda window: is_ended.wait(timeout=60)
    start_worker("extraction", extractor_seconds=0.01).run(Stage.EXTRACTION)
    assert codes == [70]
