import pytest
from prometheus_client.parser import text_string_to_metric_families

from db.models import WorkerState
from db.workers import WorkerCounters, heartbeat, register


@pytest.fixture
def scrape(client):
    """Return every sample by its name and its labels' values."""

    def run():
        answer = client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    return run


@pytest.fixture
def report_worker(sessions):
    def report(name, queues, state, **counters):
        with sessions.begin() as session:
            register(session, name, queues=queues, pid=1, host="here")
            heartbeat(
                session,
                name,
                state=state,
                error=None,
                models=[],
                counters=WorkerCounters(**counters),
            )

    return report


def test_an_idle_service_shows_every_figure_as_0(scrape):
    samples = scrape()
    statuses = ("queued", "extracted", "completed", "failed", "cancelled")
    assert {("halldetect_audits", status) for status in statuses} <= samples.keys()
    for stage in ("extraction", "verification"):
        for name in ("waiting_audits", "running_audits", "oldest_waiting_seconds"):
            assert (f"halldetect_{name}", stage) in samples
    for queue in ("extraction", "nli", "maintenance"):
        for state in WorkerState:
            assert ("halldetect_workers", queue, state.value) in samples
    for state in ("waiting", "due"):
        assert ("halldetect_webhook_deliveries", state) in samples
    assert ("halldetect_oldest_due_webhook_seconds",) in samples
    assert samples["halldetect_database_up",] == 1
    of_the_service = (
        "halldetect_audit",
        "halldetect_waiting",
        "halldetect_running",
        "halldetect_w",
        "halldetect_oldest",
    )
    assert {value for name, value in samples.items() if name[0].startswith(of_the_service)} == {0}


def test_audits_are_counted_by_status_and_stage(scrape, upload, record, execute):
    upload(*(record(str(number)) for number in range(6)))
    execute(
        "UPDATE halldetect.audits SET status = 'extracted', extracted_at = now(),"
        " submitted_at = now() - interval '1 hour' WHERE id = 2"
    )
    execute(
        "UPDATE halldetect.audits SET status = 'failed', error = 'odd', finished_at = now(),"
        " faults = 3 WHERE id = 3"
    )
    execute(
        "UPDATE halldetect.audits SET lease_owner = 'w', faults = 1,"
        " lease_expires_at = now() + interval '1 minute' WHERE id = 4"
    )
    execute("UPDATE halldetect.audits SET submitted_at = now() - interval '2 hours' WHERE id = 1")
    samples = scrape()
    counts = {name[1]: value for name, value in samples.items() if name[0] == "halldetect_audits"}
    assert counts == {"queued": 4, "extracted": 1, "completed": 0, "failed": 1, "cancelled": 0}
    assert samples["halldetect_waiting_audits", "extraction"] == 3
    assert samples["halldetect_running_audits", "extraction"] == 1
    assert samples["halldetect_waiting_audits", "verification"] == 1
    assert samples["halldetect_running_audits", "verification"] == 0
    assert 7200 <= samples["halldetect_oldest_waiting_seconds", "extraction"] < 7800
    assert 3600 <= samples["halldetect_oldest_waiting_seconds", "verification"] < 4200
    assert samples["halldetect_audit_faults",] == 4


def test_messages_to_webhooks_are_counted_with_the_age_of_the_oldest(
    scrape, client, upload, record, execute
):
    client.post("/v1/webhooks", json={"url": "https://hooks.example.org"})
    for number in range(5):
        upload(record(str(number)))
    due = (
        "UPDATE halldetect.webhook_deliveries SET state = 'due', next_attempt_at = now(),"
        " due_since = now() - CAST(:age AS interval) WHERE batch_id = :batch"
    )
    execute(due, age="3 hours", batch=2)
    execute(due, age="1 hour", batch=3)
    execute(
        "UPDATE halldetect.webhook_deliveries SET state = 'failed', finished_at = now(),"
        " last_error = 'e', due_since = now() - interval '9 hours' WHERE batch_id = 4"
    )
    samples = scrape()
    assert samples["halldetect_webhook_deliveries", "waiting"] == 2
    assert samples["halldetect_webhook_deliveries", "due"] == 2
    assert 3 * 3600 <= samples["halldetect_oldest_due_webhook_seconds",] < 3 * 3600 + 600


def test_what_a_worker_holds_is_not_the_oldest_that_waits(scrape, upload, record, execute):
    upload(record("a"))
    execute(
        "UPDATE halldetect.audits SET submitted_at = now() - interval '2 hours', lease_owner = 'w',"
        " lease_expires_at = now() + interval '1 minute'"
    )
    assert scrape()["halldetect_oldest_waiting_seconds", "extraction"] == 0


def test_workers_and_their_counters(scrape, report_worker, execute):
    odd = 'nli@"host\\1"\n'
    report_worker(
        f"{odd}/ab12", ["nli"], WorkerState.READY, pairs=7, busy_seconds=1.5, padded_tokens=9
    )
    report_worker(f"{odd}/cd34", ["nli"], WorkerState.STOPPING, pairs=1)
    report_worker("all@host/1", ["nli", "extraction"], WorkerState.FAILED)
    report_worker("gone", ["nli"], WorkerState.READY)
    execute("UPDATE halldetect.workers SET seen_at = now() - interval '1 hour' WHERE name = 'gone'")
    samples = scrape()
    assert samples["halldetect_workers", "nli", "ready"] == 1
    assert samples["halldetect_workers", "nli", "failed"] == 1
    assert samples["halldetect_workers", "extraction", "failed"] == 1
    assert samples["halldetect_workers", "extraction", "ready"] == 0
    # A process and its successor are one worker: names that are new each time would be endless.
    assert samples["halldetect_worker_pairs_total", odd] == 8
    assert samples["halldetect_worker_busy_seconds_total", odd] == 1.5
    assert samples["halldetect_worker_padded_tokens_total", odd] == 9
    assert samples["halldetect_worker_pairs_total", "all@host"] == 0
    assert ("halldetect_worker_pairs_total", "gone") not in samples


def test_every_family_says_what_it_is(client, report_worker):
    report_worker("w", ["nli"], WorkerState.READY)
    client.get("/healthz")
    for family in text_string_to_metric_families(client.get("/metrics").text):
        assert family.documentation
        assert family.type in ("gauge", "counter", "histogram")
        assert family.samples
