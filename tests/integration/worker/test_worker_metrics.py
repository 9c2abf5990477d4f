"""What a worker counts of what really happens to audits."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from cli.stack.ports import free_port
from db.line import Stage
from db.models import WorkerState
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import FinishReason
from halldetect.errors import InputError
from worker import process as process_module


@pytest.fixture
def value():
    """Return a function: a process, a name and labels to what it counts."""

    def read(process, name, **labels):
        found = process.metrics.registry.get_sample_value(f"halldetect_{name}", labels)
        assert found is not None, name
        return found

    return read


@pytest.fixture
def finished(value):
    """Return a function: a process to what it finished, as {(stage, outcome): count}."""

    def read(process):
        counts = {
            (stage.value, outcome): value(
                process, "audits_finished_total", stage=stage.value, outcome=outcome
            )
            for stage in Stage
            for outcome in ("completed", "failed", "poison")
        }
        return {name: count for name, count in counts.items() if count}

    return read


def run_both(process):
    for stage in Stage:
        process.run(stage)


def test_an_audit_is_counted_and_timed_in_each_stage(start_worker, submit, finished, value, rows):
    submit("The mill opened in 1900. It closed in 1950.", "Nobody was hurt.")
    rows("UPDATE halldetect.audits SET submitted_at = now() - interval '2 minutes' RETURNING 1")
    process = start_worker("extraction", "nli")
    assert finished(process) == {}
    run_both(process)
    assert finished(process) == {("extraction", "completed"): 2, ("verification", "completed"): 2}
    assert value(process, "claims_total", origin="sentence") == 3
    assert value(process, "claims_total", origin="llm") == 0
    assert value(process, "pairs_total") > 0
    assert value(process, "padded_tokens_total") >= value(process, "tokens_total") > 0
    assert value(process, "runs_total", stage="extraction", ended="nothing_left") == 1
    for stage, at_least in (("extraction", 240), ("verification", 0)):
        count = value(process, "audit_waiting_seconds_count", stage=stage)
        waited = value(process, "audit_waiting_seconds_sum", stage=stage)
        assert count == 2
        assert waited >= at_least
        assert value(process, "audit_processing_seconds_count", stage=stage) == 2
    assert value(process, "audit_turnaround_seconds_count") == 2
    assert value(process, "audit_turnaround_seconds_sum") >= 240


def test_the_wait_is_that_before_the_first_attempt(start_worker, submit, value, extractor, rows):
    submit("The mill opened in 1900.")
    process = start_worker("extraction")

    def fail(_):
        extractor.before = lambda window: None
        raise RuntimeError("once")

    extractor.before = fail
    process.run(Stage.EXTRACTION)
    assert value(process, "retries_total", cause="error") == 1
    assert rows("SELECT faults FROM halldetect.audits") == [(1,)]
    process.run(Stage.EXTRACTION)
    assert value(process, "audit_waiting_seconds_count", stage="extraction") == 1
    assert value(process, "retries_total", cause="error") == 1


def test_an_audit_that_fails_by_itself_is_no_retry(
    start_worker, submit, value, finished, extractor
):
    submit("The mill opened in 1900.")

    def refuse(_):
        raise InputError("not this one")

    extractor.before = refuse
    process = start_worker("extraction", max_attempts=2)
    process.run(Stage.EXTRACTION)
    assert finished(process) == {("extraction", "failed"): 1}
    assert value(process, "retries_total", cause="error") == 0


def test_the_last_charged_attempt_is_a_failure(start_worker, submit, value, finished, encoder):
    submit("A heron saw it.")

    def fail(batch):
        if encoder.has_word(batch, "heron"):
            raise RuntimeError("odd")

    encoder.before = fail
    process = start_worker("extraction", "nli", max_attempts=2)
    run_both(process)
    process.run(Stage.VERIFICATION)
    assert finished(process) == {("extraction", "completed"): 1, ("verification", "failed"): 1}
    assert value(process, "retries_total", cause="error") == 1


@pytest.mark.parametrize("is_noticed_early", [False, True])
def test_a_lost_lease_counts_once_however_it_is_noticed(
    start_worker, submit, rows, value, finished, extractor, is_noticed_early
):
    submit("The mill opened in 1900.", "It closed in 1950.")
    process = start_worker("extraction")
    taken = iter(["r1"])

    def take_away(_):
        for name in taken:
            rows(
                "UPDATE halldetect.audits SET lease_owner = 'other',"
                " fencing_token = fencing_token + 1 WHERE custom_id = :name RETURNING id",
                name=name,
            )
            if is_noticed_early:
                process._renewal._round()

    extractor.before = take_away
    process.run(Stage.EXTRACTION)
    assert value(process, "lost_leases_total") == 1
    assert finished(process) == {("extraction", "completed"): 1}


def lose_worker(rows, faults, begun=True):
    rows(
        "UPDATE halldetect.audits SET lease_owner = 'nli@lost/1', fencing_token = 1, attempts = 1,"
        " lease_begun = :begun, lease_expires_at = now() - interval '1 second', faults = :faults"
        " WHERE lease_owner IS NULL RETURNING id",
        faults=faults,
        begun=begun,
    )


def test_the_sweeper_counts_lost_workers_and_poison(start_worker, submit, rows, value, finished):
    process = start_worker("maintenance")
    submit("The mill opened in 1900.")
    lose_worker(rows, faults=0, begun=False)
    process.sweep()
    assert value(process, "expired_leases_total") == 1
    assert value(process, "retries_total", cause="worker_lost") == 0
    lose_worker(rows, faults=0)
    process.sweep()
    assert value(process, "retries_total", cause="worker_lost") == 1
    lose_worker(rows, faults=2)
    process.sweep()
    assert finished(process) == {("extraction", "poison"): 1}
    assert value(process, "expired_leases_total") == 3
    assert value(process, "retries_total", cause="worker_lost") == 1
    assert value(process, "sweeps_total") == 3


def test_what_the_model_invents_is_counted_by_reason(start_worker, submit, value, extractor):
    submit("The mill opened in 1900.")
    extractor.extract = lambda window, max_claims, ends_at: Extraction(
        output="The mill opened in 1900.\nThe mill opened in 1901.\nThe mill",
        finish=FinishReason.LENGTH,
        prompt_tokens=9,
        output_tokens=17,
    )
    process = start_worker("extraction")
    process.run(Stage.EXTRACTION)
    assert value(process, "rejected_claims_total", reason="number") == 1
    assert value(process, "rejected_claims_total", reason="truncated") == 1
    assert value(process, "rejected_claims_total", reason="name") == 0
    assert value(process, "claims_total", origin="llm") == 1
    assert value(process, "generations_total", finish="length") == 1
    assert value(process, "output_tokens_total") == 17
    assert value(process, "extractor_seconds_total") > 0


def test_a_model_that_does_not_load_shows_in_the_state(start_worker, value, monkeypatch):
    process = start_worker("nli")
    assert process._models.wait() is not None
    assert value(process, "worker_state", state="ready") == 1
    assert value(process, "model_load_failures_total") == 0

    def fail(*_):
        raise OSError("no such file")

    monkeypatch.setattr(process_module, "load_models", fail)
    monkeypatch.setattr("worker.models._FIRST_PAUSE_SECONDS", 600.0)  # it is not tried again here
    process._models.declare_broken("it gives NaN")
    assert value(process, "model_load_failures_total") == 1
    assert value(process, "worker_state", state="failed") == 1
    assert value(process, "worker_state", state="ready") == 0
    assert process.run(Stage.VERIFICATION).ended.name == "MODEL_BROKEN"
    assert value(process, "runs_total", stage="verification", ended="model_broken") == 1


def get(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_figures_are_served_where_the_settings_say_and_nowhere_else(start_worker):
    port = free_port()
    process = start_worker("nli", metrics_port=port)
    kind, text = get(port)
    assert kind.startswith("text/plain; version=0.0.4")
    assert "\nhalldetect_sweeps_total 0.0\n" in text
    assert "\nprocess_resident_memory_bytes " in text
    assert "_created" not in text
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(port, "/")
    refused.value.close()
    assert refused.value.code == 404
    process.stop()
    with pytest.raises(urllib.error.URLError):
        get(port)


def test_a_port_that_is_taken_is_an_error_that_says_what_to_set(start_worker):
    port = free_port()
    start_worker("nli", metrics_port=port)
    with pytest.raises(InputError, match=f"127.0.0.1:{port} .*HALLDETECT_METRICS_PORT"):
        start_worker("extraction", metrics_port=port)


def test_every_state_is_shown_from_the_start(start_worker, value):
    process = start_worker("maintenance")
    states = [value(process, "worker_state", state=state.value) for state in WorkerState]
    assert sum(states) == 1
