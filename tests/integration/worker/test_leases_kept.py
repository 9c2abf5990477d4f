"""Leases in the middle of work: taken away, cancelled, renewed, handed back."""

from __future__ import annotations

import threading

import pytest

from db.batches import cancel_batch
from db.line import Stage
from worker.run import Ended

OTHER = "nli@elsewhere/1"


def take_over(rows, custom_id):
    rows(
        "UPDATE halldetect.audits SET lease_owner = :owner, fencing_token = fencing_token + 1"
        " WHERE custom_id = :custom_id RETURNING id",
        owner=OTHER,
        custom_id=custom_id,
    )


def test_a_lease_taken_away_in_the_middle_makes_the_late_write_lose(
    start_worker, submit, rows, encoder
):
    submit("The mill opened in 1900.", "It closed in 1950.", "Nobody was hurt.")
    process = start_worker("extraction", "nli")
    process.run(Stage.EXTRACTION)
    taken = iter(["r2"])
    encoder.before = lambda batch: [take_over(rows, one) for one in taken]
    summary = process.run(Stage.VERIFICATION)
    assert (summary.audits, summary.ended) == (2, Ended.NOTHING_LEFT)
    found = rows(
        "SELECT status, lease_owner, faults,"
        " (SELECT count(*) FROM halldetect.probabilities AS p WHERE p.audit_id = a.id)"
        " FROM halldetect.audits AS a ORDER BY id"
    )
    completed, taken_away = ("completed", None, 0, 1), ("extracted", OTHER, 0, 0)
    assert found == [completed, taken_away, completed]


def test_a_lease_taken_away_during_extraction_loses_too(start_worker, submit, rows, extractor):
    submit("The mill opened in 1900.", "It closed in 1950.")
    taken = iter(["r1"])
    extractor.before = lambda window: [take_over(rows, one) for one in taken]
    summary = start_worker("extraction").run(Stage.EXTRACTION)
    assert summary.audits == 1
    assert rows("SELECT status, lease_owner FROM halldetect.audits ORDER BY id") == [
        ("queued", OTHER),
        ("extracted", None),
    ]
    assert rows("SELECT count(*) FROM halldetect.extractions") == [(1,)]


def test_a_batch_cancelled_while_the_model_runs_costs_no_further_batch(
    start_worker, submit, states, sessions, encoder
):
    batch = submit(*[f"The mill opened in {1900 + n}." for n in range(12)])
    process = start_worker("extraction", "nli", token_budget=512)
    process.run(Stage.EXTRACTION)
    lost = threading.Event()
    marked = process._renewal._round
    batches = []

    def one_round():
        marked()
        lost.set()

    def cancel(_):
        batches.append(1)
        if len(batches) == 1:
            with sessions.begin() as session:
                cancel_batch(session, batch)
            process._renewal._round = one_round
            process._renewal.report_soon()
            assert lost.wait(timeout=30)

    encoder.before = cancel
    summary = process.run(Stage.VERIFICATION)
    assert (summary.audits, summary.ended) == (0, Ended.NOTHING_LEFT)
    assert len(batches) == 1
    assert {status for status, _, _ in states()} == {"cancelled"}


def test_a_lease_outlives_its_seconds_while_work_goes_on(start_worker, submit, rows, encoder):
    submit("The mill opened in 1900.")
    process = start_worker("extraction", "nli", lease_seconds=4)
    process.run(Stage.EXTRACTION)
    expiries = []

    def watch(_):
        statement = "SELECT lease_expires_at FROM halldetect.audits"
        expiries.extend(rows(statement))
        while rows(statement) == expiries[:1]:
            threading.Event().wait(0.1)
        expiries.extend(rows(statement))

    encoder.before = watch
    assert process.run(Stage.VERIFICATION).audits == 1
    assert expiries[0] < expiries[1]


@pytest.mark.parametrize("stage", list(Stage))
def test_a_shutdown_in_the_middle_hands_everything_back_and_charges_nobody(
    start_worker, submit, states, nothing_is_held, encoder, extractor, stage
):
    submit(*[f"The mill opened in {1900 + n}." for n in range(6)])
    process = start_worker("extraction", "nli", load_audits=2, extraction_load_audits=2)
    if stage is Stage.VERIFICATION:
        process.run(Stage.EXTRACTION)
    before = [attempts for _, attempts, _ in states()]
    encoder.before = extractor.before = lambda _: process.ask_to_stop()
    summary = process.run(stage)
    assert summary.ended is Ended.STOPPING
    assert nothing_is_held()
    after = states()
    assert [faults for _, _, faults in after] == [0] * 6
    # Extraction ends the response at hand; an encoder's load is given up between two batches. An
    # attempt that was never begun does not count.
    begun = 1 if stage is Stage.EXTRACTION else 2
    assert [attempts for _, attempts, _ in after] == [
        count + (number < begun) for number, count in enumerate(before)
    ]
    assert summary.audits == (1 if stage is Stage.EXTRACTION else 0)


def test_a_response_of_many_windows_is_given_up_between_two_of_them(
    start_worker, submit, states, nothing_is_held, extractor
):
    submit("The mill opened in 1900. " * 40)
    process = start_worker("extraction")
    seen = []

    def stop(window):
        seen.append(window)
        process.ask_to_stop()

    extractor.before = stop
    assert process.run(Stage.EXTRACTION).ended is Ended.STOPPING
    assert len(seen) == 1
    assert states() == [("queued", 1, 0)]
    assert nothing_is_held()


def test_a_worker_that_stops_signs_off(start_worker, worker_rows):
    process = start_worker("nli")
    process._renewal.report_soon()
    while not worker_rows():
        threading.Event().wait(0.05)
    process.stop()
    assert worker_rows() == []
