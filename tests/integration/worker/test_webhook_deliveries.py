"""From a batch to its receiver: a real database, real requests on loopback, and a moved clock.

What waits for the next attempt is made due by moving it in the database.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from datetime import date, timedelta

import pytest
from receivers import Receiver, answers, in_turn
from sqlalchemy import text
from stored_audits import complete_waiting
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from cli.stack.ports import free_port
from db import webhook_deliveries
from db.api_keys import create_key, revoke_key
from db.batches import cancel_batch
from db.ownership import Caller
from db.retention import pruning
from db.retries import retry_audit, retry_batch
from db.scopes import Scope
from db.submission import BatchUpload
from db.webhook_deliveries import claim_delivery, mark_due, record_failure, record_success
from db.webhooks import create_webhook, delete_webhook
from halldetect.record import make_record
from halldetect.webhook_targets import AllowedTargets
from queues.names import Queue
from worker import webhooks as webhooks_module
from worker.counters import Counters
from worker.metrics import WorkerMetrics
from worker.webhook_pauses import MOST_ATTEMPTS
from worker.webhook_sender import WebhookSender
from worker.webhooks import Courier, DeliveryRunEnded


@pytest.fixture(autouse=True)
def _long_runs(monkeypatch):
    """Let a run do all that is due, on a machine that stands still for a while, too."""
    monkeypatch.setattr(webhooks_module, "RUN_SECONDS", 600.0)


@pytest.fixture
def receive():
    started = []

    def start(handle=None):
        started.append(Receiver(handle))
        return started[-1]

    yield start
    for receiver in started:
        receiver.stop()


@pytest.fixture
def metrics():
    return WorkerMetrics(Counters())


@pytest.fixture
def make_courier(sessions, wake_ups, metrics):
    def make(sender=None, seconds=30.0):
        sender = sender or WebhookSender(
            AllowedTargets.parse("127.0.0.1"), deadline_seconds=seconds
        )
        return Courier(sessions, wake_ups, sender, stopping=threading.Event(), metrics=metrics)

    return make


@pytest.fixture
def courier(make_courier):
    return make_courier()


@pytest.fixture
def add(sessions):
    """Make a webhook of an owner; return its id and its secret."""

    def make(url, owner=None):
        with sessions.begin() as session:
            stored, secret = create_webhook(session, url, Caller(owner))
        return stored.id, secret

    return make


@pytest.fixture
def new_key(sessions):
    def make():
        with sessions.begin() as session:
            return create_key(session, "a", [Scope.SUBMIT])[0].id

    return make


@pytest.fixture
def batch(sessions):
    """Store a batch of an owner's and return its id."""

    def store(*responses, owner=None):
        with (
            sessions.begin() as session,
            BatchUpload(
                session, default_policy="embedded", max_errors=1, api_key_id=owner
            ) as upload,
        ):
            for line, response in enumerate(responses or ("It closed in 1950.",), start=1):
                upload.add(line, make_record(source="It closed in 1950.", response=response))
            return upload.finish().batch_id

    return store


@pytest.fixture
def fail(execute):
    """Let the audits of a batch fail, all or those of some lines."""

    def run(batch_id, *lines):
        return execute(
            "UPDATE halldetect.audits SET status = 'failed', error = 'e', finished_at = now(),"
            " lease_owner = NULL, lease_expires_at = NULL, lease_begun = false"
            " WHERE batch_id = :id AND (:all OR line = ANY(:lines))",
            id=batch_id,
            all=not lines,
            lines=list(lines),
        )

    return run


@pytest.fixture
def finished(batch, fail):
    """Store a batch that is finished already; return its id."""

    def store(owner=None):
        batch_id = batch(owner=owner)
        fail(batch_id)
        return batch_id

    return store


@pytest.fixture
def deliveries(rows):
    """List (batch, state, attempts, status, error) of all deliveries, in order."""
    return lambda: rows(
        "SELECT batch_id, state, attempts, last_status, last_error"
        " FROM halldetect.webhook_deliveries ORDER BY id"
    )


@pytest.fixture
def later(execute):
    """Make everything due that waits for its next attempt."""
    return lambda: execute(
        "UPDATE halldetect.webhook_deliveries SET next_attempt_at = now() WHERE state = 'due'"
    )


def work(courier):
    courier.wake()
    return courier.run()


def is_signed(request, secret):
    """Check a signature by the words of the specification, without any code of ours."""
    signed = b".".join(
        [
            request.headers["webhook-id"].encode(),
            request.headers["webhook-timestamp"].encode(),
            request.body,
        ]
    )
    expected = base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    return f"v1,{expected}" in request.headers["webhook-signature"].split(" ")


def test_a_receiver_is_told_once_that_a_batch_is_finished(
    courier, add, batch, receive, deliveries, sessions, auditor
):
    receiver = receive()
    _, secret = add(receiver.url)
    batch_id = batch("It closed in 1950.", "A dragon lives in it.")
    work(courier)
    assert deliveries() == [(batch_id, "waiting", 0, None, None)]
    assert receiver.requests == []
    complete_waiting(sessions, auditor)
    for _ in range(3):
        assert work(courier) is DeliveryRunEnded.NOTHING_DUE
    [request] = receiver.requests
    assert is_signed(request, secret)
    assert not is_signed(request, bytes(32))
    document = json.loads(request.body)
    assert document["type"] == "batch.finished"
    assert document["data"]["id"] == str(batch_id)
    assert document["data"]["status"] == "completed"
    assert document["data"]["completed"] == document["data"]["total"] == 2
    assert document["timestamp"] == document["data"]["finished_at"]
    assert b"dragon" not in request.body
    assert deliveries() == [(batch_id, "delivered", 1, 200, None)]


def test_cancelled_and_failed_batches_are_finished_too(
    courier, add, batch, fail, receive, deliveries, sessions
):
    receiver = receive()
    add(receiver.url)
    cancelled, failed = batch(), batch("a.", "b.")
    fail(failed, 1)
    with sessions.begin() as session:
        cancel_batch(session, cancelled)
    work(courier)
    fail(failed)
    work(courier)
    told = [json.loads(request.body)["data"] for request in receiver.requests]
    assert [(one["id"], one["status"], one["cancelled"], one["failed"]) for one in told] == [
        (str(cancelled), "cancelled", 1, 0),
        (str(failed), "completed", 0, 2),
    ]


def test_webhooks_are_told_of_their_owners_batches_from_then_on(
    courier, add, finished, batch, receive, deliveries, new_key
):
    one, other = new_key(), new_key()
    urls = {owner: receive() for owner in (one, other, None)}
    before = finished(owner=one)
    for owner, receiver in urls.items():
        add(receiver.url, owner=owner)
    expected = {owner: finished(owner=owner) for owner in urls}
    work(courier)
    for owner, receiver in urls.items():
        told = [json.loads(request.body)["data"]["id"] for request in receiver.requests]
        assert told == [str(expected[owner])], owner
    assert before not in {row[0] for row in deliveries()}


def test_every_webhook_of_an_owner_is_told(courier, add, finished, receive):
    receivers = [receive() for _ in range(3)]
    secrets = [add(receiver.url)[1] for receiver in receivers]
    finished()
    work(courier)
    requests = [receiver.requests[0] for receiver in receivers]
    assert len({request.headers["webhook-id"] for request in requests}) == 3
    for request, secret in zip(requests, secrets, strict=True):
        assert is_signed(request, secret)


def test_a_failed_attempt_is_repeated_until_it_succeeds(
    courier, make_courier, add, finished, receive, deliveries, later, rows
):
    turns = [
        answers(500, body=b"Traceback: secret"),
        lambda connection, request: connection.recv(1),  # no answer
        lambda connection, request: None,
        answers(302, "Location: http://127.0.0.1:1/"),
        answers(204),
    ]
    receiver = receive(in_turn(*turns))
    add(receiver.url)
    batch_id = finished()
    seen = []
    for turn in range(len(turns)):
        work(make_courier(seconds=2.0) if turn == 1 else courier)
        seen += deliveries()
        work(courier)  # which is too early
        later()
    assert seen == [
        (batch_id, "due", 1, 500, "it answered 500"),
        (batch_id, "due", 2, None, "it did not answer within 2 s"),
        (batch_id, "due", 3, None, "what it answered is no HTTP"),
        (batch_id, "due", 4, 302, "it answered 302"),
        (batch_id, "delivered", 5, 204, None),
    ]
    assert len(receiver.requests) == len(turns)
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.body for request in receiver.requests}) == 1
    stored = rows("SELECT d::text FROM halldetect.webhook_deliveries AS d")
    assert "secret" not in str(stored)


def test_after_the_last_attempt_it_is_failed(courier, add, finished, receive, deliveries, later):
    receiver = receive(answers(503))
    add(receiver.url)
    batch_id = finished()
    for _ in range(MOST_ATTEMPTS + 2):
        work(courier)
        later()
    assert len(receiver.requests) == MOST_ATTEMPTS
    assert deliveries() == [(batch_id, "failed", MOST_ATTEMPTS, 503, "it answered 503")]


def test_a_receiver_that_is_gone_is_not_asked_again(
    courier, add, finished, receive, deliveries, later
):
    receiver = receive(answers(410))
    add(receiver.url)
    batch_id = finished()
    work(courier)
    assert deliveries() == [(batch_id, "failed", 1, 410, "it answered 410")]
    assert later() == 0


def test_the_next_attempt_is_due_when_its_pause_is_over(courier, add, finished, receive, rows):
    add(receive(answers(500)).url)
    finished()
    work(courier)
    [(pause,)] = rows("SELECT next_attempt_at - last_attempt_at FROM halldetect.webhook_deliveries")
    assert timedelta(seconds=12) <= pause <= timedelta(seconds=18 + 30)


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_asks_for_a_pause_gets_it(courier, add, finished, receive, rows, status):
    add(receive(answers(status, "Retry-After: 7200")).url)
    add(receive(answers(status, f"Retry-After: {10**9}")).url)
    finished()
    work(courier)
    asked = rows(
        "SELECT next_attempt_at - last_attempt_at FROM halldetect.webhook_deliveries ORDER BY id"
    )
    for (pause,), hours in zip(asked, (2, 24), strict=True):
        # An attempt takes a while, after which the pause begins.
        assert timedelta(hours=hours) <= pause <= timedelta(hours=hours, minutes=5)


def test_asking_for_a_pause_gives_no_attempt_more(
    courier, add, finished, receive, deliveries, later
):
    add(receive(answers(503, "Retry-After: 1")).url)
    batch_id = finished()
    for _ in range(MOST_ATTEMPTS + 1):
        work(courier)
        later()
    assert deliveries() == [(batch_id, "failed", MOST_ATTEMPTS, 503, "it answered 503")]


@pytest.fixture
def count(metrics):
    """Return what was counted of attempts and of what is given up, without what is 0."""

    def read():
        found = {}
        for family in metrics.registry.collect():
            for sample in family.samples:
                if family.name.startswith("halldetect_webhook") and sample.value:
                    found[next(iter(sample.labels.values()))] = sample.value
        return found

    return read


def test_attempts_are_counted_by_how_they_end_and_what_is_given_up_by_why(
    courier, make_courier, add, finished, receive, later, count, sessions, new_key
):
    revoked = new_key()
    for handle in (answers(200), answers(301), answers(404), answers(410)):
        add(receive(handle).url)
    for handle in (answers(503), lambda connection, request: None):
        add(receive(handle).url)
    add(f"http://127.0.0.1:{free_port()}/")
    add("http://10.0.0.1/")
    add(receive().url, owner=revoked)
    assert count() == {}
    finished()
    finished(owner=revoked)
    courier.wake()
    with sessions.begin() as session:
        revoke_key(session, revoked)
    courier.run()
    first = {
        "delivered": 1,
        "redirected": 1,
        "refused": 2,
        "server_error": 1,
        "no_http": 1,
        "connection": 1,
        "target": 1,
    }
    assert count() == {**first, "gone": 1, "key_revoked": 1}
    for _ in range(MOST_ATTEMPTS):
        later()
        work(courier)
    repeated = {
        name: MOST_ATTEMPTS * first[name]
        for name in ("redirected", "server_error", "no_http", "connection", "target")
    }
    assert count() == {
        **first,
        **repeated,
        "refused": 1 + MOST_ATTEMPTS,
        "attempts": 6,
        "gone": 1,
        "key_revoked": 1,
    }


def test_a_fault_of_ours_is_counted_as_one(make_courier, add, finished, count):
    class Faulty:
        def send(self, url, message):
            raise ZeroDivisionError

    add("https://hooks.example.org/")
    finished()
    work(make_courier(sender=Faulty()))
    assert count() == {"fault": 1}


def test_a_worker_that_ends_while_sending_has_only_delayed_the_next_attempt(
    sessions, courier, add, finished, receive, deliveries, later
):
    receiver = receive()
    add(receiver.url)
    batch_id = finished()
    courier.wake()
    with sessions.begin() as session:
        assert claim_delivery(session, hold_seconds=60)
    # Here the worker dies. What it held is nobody's until the hold is over.
    work(courier)
    assert receiver.requests == []
    assert deliveries() == [(batch_id, "due", 1, None, "it was not recorded how the attempt ended")]
    later()
    work(courier)
    assert len(receiver.requests) == 1
    assert deliveries() == [(batch_id, "delivered", 2, 200, None)]


def test_an_overtaken_attempt_writes_nothing(sessions, courier, add, finished, deliveries, later):
    add("http://127.0.0.1:1/")
    batch_id = finished()
    courier.wake()

    def claim():
        with sessions.begin() as session:
            return claim_delivery(session, hold_seconds=60)

    def settle(claimed, outcome):
        with sessions.begin() as session:
            if outcome == 200:
                return record_success(session, claimed, 200)
            return record_failure(session, claimed, status=outcome, error="e", pause=None)

    slow = claim()
    later()
    quick = claim()
    assert (slow.id, slow.message_id) == (quick.id, quick.message_id)
    assert not settle(slow, 500)
    assert settle(quick, 200)
    assert not settle(quick, 500)
    assert not settle(slow, 200)
    assert deliveries() == [(batch_id, "delivered", 2, 200, None)]


def test_two_workers_at_once_send_each_message_once(make_courier, add, finished, receive):
    receiver = receive()
    add(receiver.url)
    batches = {str(finished()) for _ in range(30)}
    couriers = [make_courier(), make_courier()]
    for courier in couriers:
        courier.wake()
    threads = [threading.Thread(target=courier.run) for courier in couriers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [json.loads(request.body)["data"]["id"] for request in receiver.requests]
    assert sorted(told) == sorted(batches)


def test_a_dead_receiver_keeps_nobody_else_waiting(
    make_courier, add, finished, receive, new_key, deliveries
):
    """Only others' success ends the silence of the dead one: it must come meanwhile."""
    dead_owner, other = new_key(), new_key()
    told = threading.Event()
    lively = receive(lambda *about: (answers(200)(*about), told.set()))
    dead = receive(lambda *about: told.wait(60))
    add(dead.url, owner=dead_owner)
    add(lively.url, owner=other)
    for _ in range(20):
        finished(owner=dead_owner)
    finished(owner=other)
    work(make_courier())
    assert [state for _, state, *_ in deliveries()][-1] == "delivered"
    assert told.is_set()
    assert len(lively.requests) == 1


def test_a_run_ends_and_leaves_the_rest_to_another(
    make_courier, add, finished, wake_ups, receive, monkeypatch
):
    monkeypatch.setattr(webhooks_module, "RUN_SECONDS", 0.0)
    receiver = receive()
    add(receiver.url)
    finished()
    courier = make_courier()
    courier.wake()
    assert wake_ups.queued(Queue.MAINTENANCE) == 1
    assert courier.run() is DeliveryRunEnded.TIME_IS_UP
    assert receiver.requests == []
    assert wake_ups.queued(Queue.MAINTENANCE) == 2
    monkeypatch.setattr(webhooks_module, "RUN_SECONDS", 10.0)
    assert courier.run() is DeliveryRunEnded.NOTHING_DUE
    assert len(receiver.requests) == 1
    courier.wake()
    assert wake_ups.queued(Queue.MAINTENANCE) == 2


def test_a_worker_that_stops_begins_nothing(sessions, wake_ups, add, finished, receive, metrics):
    receiver = receive()
    add(receiver.url)
    finished()
    stopping = threading.Event()
    sender = WebhookSender(AllowedTargets.parse("127.0.0.1"))
    courier = Courier(sessions, wake_ups, sender, stopping=stopping, metrics=metrics)
    courier.wake()
    stopping.set()
    assert courier.run() is DeliveryRunEnded.STOPPING
    assert receiver.requests == []


def test_a_fault_of_ours_is_recorded_and_not_repeated_at_once(
    make_courier, add, finished, deliveries
):
    class Broken:
        def send(self, url, message):
            raise ZeroDivisionError("secret")

    add("http://127.0.0.1:1/")
    batch_id = finished()
    assert work(make_courier(Broken())) is DeliveryRunEnded.NOTHING_DUE
    assert deliveries() == [(batch_id, "due", 1, None, "a fault of the service: ZeroDivisionError")]


def test_what_is_retried_is_told_anew_when_it_finishes_anew(
    courier, add, batch, fail, receive, deliveries, sessions, rows
):
    receiver = receive()
    add(receiver.url)
    batch_id = batch("a.", "b.")
    fail(batch_id)
    work(courier)
    assert deliveries() == [(batch_id, "delivered", 1, 200, None)]
    with sessions.begin() as session:
        assert retry_batch(session, batch_id).total == 2
    work(courier)
    assert deliveries() == [(batch_id, "waiting", 0, None, None)]
    fail(batch_id)
    work(courier)
    [(audit,)] = rows("SELECT min(id) FROM halldetect.audits")
    with sessions.begin() as session:
        assert retry_audit(session, audit).total == 1
        assert retry_audit(session, audit).total == 0
    fail(batch_id)
    work(courier)
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert len(ids) == len(set(ids)) == 3
    assert deliveries() == [(batch_id, "delivered", 1, 200, None)]


def test_what_is_retried_before_it_was_told_is_told_once(
    courier, add, finished, fail, receive, deliveries, sessions
):
    receiver = receive()
    add(receiver.url)
    batch_id = finished()
    courier.wake()
    with sessions.begin() as session:
        retry_batch(session, batch_id)
    courier.run()
    assert deliveries() == [(batch_id, "waiting", 0, None, None)]
    fail(batch_id)
    work(courier)
    assert len(receiver.requests) == 1


def test_a_batch_that_is_in_progress_again_is_not_told_as_finished(
    courier, add, finished, execute, receive, deliveries, fail
):
    """As if the retry had come in between the look at the audits and the change."""
    receiver = receive()
    add(receiver.url)
    batch_id = finished()
    courier.wake()
    execute("UPDATE halldetect.audits SET status = 'queued', error = NULL, finished_at = NULL")
    assert courier.run() is DeliveryRunEnded.NOTHING_DUE
    assert receiver.requests == []
    assert deliveries() == [(batch_id, "waiting", 0, None, None)]
    fail(batch_id)
    work(courier)
    assert len(receiver.requests) == 1


def test_an_attempt_that_a_retry_overtakes_writes_nothing(
    courier, add, batch, fail, receive, deliveries, sessions
):
    def retry(connection, request):
        with sessions.begin() as session:
            retry_batch(session, batch_id)
        answers(200)(connection, request)

    add(receive(retry).url)
    batch_id = batch()
    fail(batch_id)
    work(courier)
    assert deliveries() == [(batch_id, "waiting", 0, None, None)]


def test_a_deleted_webhook_is_not_called(courier, add, finished, batch, receive, rows, sessions):
    receiver = receive()
    webhook, _ = add(receiver.url)
    finished()
    courier.wake()
    waiting = batch()
    with sessions.begin() as session:
        assert delete_webhook(session, webhook)
    assert courier.run() is DeliveryRunEnded.NOTHING_DUE
    assert receiver.requests == []
    for table in ("webhooks", "webhook_deliveries"):
        assert rows(f"SELECT count(*) FROM halldetect.{table}") == [(0,)]
    assert rows(f"SELECT count(*) FROM halldetect.batches WHERE id = {waiting}") == [(1,)]


def test_a_webhook_that_is_deleted_meanwhile_is_the_end_of_it(
    courier, add, finished, receive, deliveries, sessions
):
    def vanish(connection, request):
        with sessions.begin() as session:
            delete_webhook(session, webhook)
        answers(500)(connection, request)

    webhook, _ = add(receive(vanish).url)
    finished()
    assert work(courier) is DeliveryRunEnded.NOTHING_DUE
    assert deliveries() == []


def test_a_webhook_deleted_during_an_upload_does_not_spoil_the_batch(
    sessions, add, deliveries, rows
):
    webhook, _ = add("http://127.0.0.1:1/")
    stored = []

    def upload():
        with (
            sessions.begin() as session,
            BatchUpload(session, default_policy="embedded", max_errors=1) as batch,
        ):
            batch.add(1, make_record(source="a.", response="a."))
            stored.append(batch.finish().batch_id)

    with sessions.begin() as session:
        delete_webhook(session, webhook)
        thread = threading.Thread(target=upload)
        thread.start()
        while not rows("SELECT FROM pg_locks WHERE NOT granted"):
            threading.Event().wait(0.02)
    thread.join()
    assert len(stored) == 1
    assert deliveries() == []


def test_a_revoked_keys_receivers_are_not_called(
    courier, add, finished, batch, fail, receive, deliveries, sessions, new_key, later
):
    owner = new_key()
    receiver = receive(answers(500))
    add(receiver.url, owner=owner)
    told, waiting = finished(owner=owner), batch(owner=owner)
    work(courier)
    with sessions.begin() as session:
        revoke_key(session, owner)
    later()
    fail(waiting)
    work(courier)
    assert len(receiver.requests) == 1
    reason = "the API key that the webhook belongs to was revoked"
    assert deliveries() == [
        (told, "failed", 1, 500, reason),
        (waiting, "failed", 0, None, reason),
    ]


def test_a_key_that_is_revoked_meanwhile_ends_the_run_for_it(
    courier, add, finished, receive, deliveries, sessions, new_key, monkeypatch
):
    monkeypatch.setattr(webhooks_module, "_AT_ONCE_OF_ONE_OWNER", 1)

    def revoke(connection, request):
        with sessions.begin() as session:
            revoke_key(session, owner)
        answers(200)(connection, request)

    owner = new_key()
    receiver = receive(revoke)
    add(receiver.url, owner=owner)
    for _ in range(3):
        finished(owner=owner)
    work(courier)
    assert [state for _, state, *_ in deliveries()] == ["delivered", "due", "due"]
    work(courier)
    assert [state for _, state, *_ in deliveries()] == ["delivered", "failed", "failed"]
    assert len(receiver.requests) == 1


def test_prune_takes_deliveries_with_their_batches(
    courier, add, finished, execute, engine, deliveries, receive
):
    add(receive().url)
    finished()
    execute("UPDATE halldetect.audits SET finished_at = '2020-01-01'")
    with pruning(engine, date(2020, 2, 1)) as prune:
        prune.run()
    assert deliveries() == []
    assert work(courier) is DeliveryRunEnded.NOTHING_DUE


def test_targets_that_are_not_public_are_not_called(
    sessions, wake_ups, add, finished, deliveries, metrics
):
    sender = WebhookSender(AllowedTargets())
    courier = Courier(sessions, wake_ups, sender, stopping=threading.Event(), metrics=metrics)
    add("https://10.0.0.1/")
    batch_id = finished()
    work(courier)
    [(_, state, attempts, status, error)] = deliveries()
    assert (state, attempts, status) == ("due", 1, None)
    assert "10.0.0.1 is not a public address" in error
    assert batch_id


def test_logs_have_ids_and_neither_secrets_nor_paths(
    courier, add, finished, receive, later, caplog
):
    receiver = receive(in_turn(answers(500), answers(200)))
    webhook, secret = add(receiver.url)
    batch_id = finished()
    with capture_logs(processors=[merge_contextvars]) as logs:
        work(courier)
        later()
        work(courier)
    told = [entry for entry in logs if entry["event"].startswith("webhook ")]
    assert [entry["event"] for entry in told] == ["webhook not delivered", "webhook delivered"]
    for attempt, entry in enumerate(told, start=1):
        assert (entry["webhook_id"], entry["batch_id"]) == (webhook, batch_id)
        assert (entry["attempt"], entry["status"]) == (attempt, [500, 200][attempt - 1])
        assert entry["target"] == f"http://127.0.0.1:{receiver.port}"
    seen = json.dumps(logs, default=repr) + caplog.text
    assert "token" not in seen
    assert base64.b64encode(secret).decode() not in seen


def test_a_sweep_looks_at_no_audit_that_has_ended(sessions, batch, fail, add):
    """What waits is found by an index of what has not ended, however large the batch."""
    add("http://127.0.0.1:1/")
    large = batch(*(f"{number}." for number in range(2000)))
    with sessions.begin() as session:  # when all of them wait, so that reading all looks cheap
        session.execute(text("ANALYZE halldetect.audits"))
    fail(large)
    with sessions.begin() as session:
        session.execute(text("LOAD 'auto_explain'; SET LOCAL auto_explain.log_min_duration = 0"))
        session.execute(text("SET LOCAL client_min_messages = log"))
        plans = []
        connection = session.connection().connection.driver_connection
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary))
        assert mark_due(session) == (1, 0)
    plan = "\n".join(plans)
    for name in ("ix_audits_unfinished_batch_id", "ix_webhook_deliveries_waiting"):
        assert name in plan
    assert "Seq Scan" not in plan


def test_very_many_that_wait_are_looked_at_in_turn(
    courier, add, batch, finished, receive, monkeypatch
):
    monkeypatch.setattr(webhook_deliveries, "_LOOKED_AT", 2)
    receiver = receive()
    add(receiver.url)
    for _ in range(5):
        batch()
    last = finished()
    for _ in range(3):
        assert receiver.requests == []
        work(courier)
    first = finished()
    for _ in range(4):
        work(courier)
    told = [json.loads(request.body)["data"]["id"] for request in receiver.requests]
    assert told == [str(last), str(first)]
