"""A webhook's secret is replaced while messages are on their way: every one can be checked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from receivers import Receiver, answers, in_turn
from sqlalchemy import text

from db.ownership import Caller
from db.submission import BatchUpload
from db.webhook_secrets import MOST_SECRETS, TooManySecrets, rotate_secret
from db.webhooks import create_webhook, delete_webhook, list_webhooks
from halldetect.record import make_record
from halldetect.webhook_targets import AllowedTargets
from worker.counters import Counters
from worker.metrics import WorkerMetrics
from worker.webhook_sender import WebhookSender
from worker.webhooks import Courier

DAY = timedelta(days=1)


@pytest.fixture
def receiver():
    started = Receiver(in_turn(answers(500), *[answers(200)] * 20))
    yield started
    started.stop()


@pytest.fixture
def execute(sessions):
    def run(statement, **values):
        with sessions.begin() as session:
            session.execute(text(statement), values)

    return run


@pytest.fixture
def webhook(sessions, receiver):
    """Make a webhook; return its id and its secret."""
    with sessions.begin() as session:
        stored, secret = create_webhook(session, receiver.url)
    return stored.id, secret


@pytest.fixture
def rotate(sessions, webhook):
    def run(overlap=DAY):
        with sessions.begin() as session:
            return rotate_secret(session, webhook[0], overlap)

    return run


@pytest.fixture
def deliver(sessions, wake_ups, execute):
    """Send whatever is unsent of the batches so far."""

    def run():
        execute(
            "UPDATE halldetect.webhook_deliveries SET next_attempt_at = now() WHERE state = 'due'"
        )
        sender = WebhookSender(AllowedTargets.parse("127.0.0.1"), deadline_seconds=30.0)
        courier = Courier(
            sessions,
            wake_ups,
            sender,
            stopping=threading.Event(),
            metrics=WorkerMetrics(Counters()),
        )
        courier.wake()
        courier.run()

    return run


@pytest.fixture
def finish_batch(sessions, execute):
    def run():
        with (
            sessions.begin() as session,
            BatchUpload(
                session, default_policy="embedded", max_errors=1, api_key_id=None
            ) as upload,
        ):
            upload.add(1, make_record(source="It closed in 1950.", response="It closed."))
            upload.finish()
        execute(
            "UPDATE halldetect.audits SET status = 'failed', error = 'e', finished_at = now()"
            " WHERE status = 'queued'"
        )

    return run


def signers(request, *secrets):
    """Return which of `secrets` a message is signed with, in the order of its signatures."""
    head = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}."
    names = {
        base64.b64encode(hmac.digest(secret, head.encode() + request.body, hashlib.sha256)): number
        for number, secret in enumerate(secrets)
    }
    signatures = request.headers["webhook-signature"].split(" ")
    return [names.get(one.removeprefix("v1,").encode(), "nobody's") for one in signatures]


def test_messages_of_the_overlap_are_signed_with_both(
    receiver, webhook, rotate, deliver, finish_batch
):
    old = webhook[1]
    finish_batch()
    deliver()  # which fails once
    new = rotate().secret
    deliver()  # the same message again
    finish_batch()
    deliver()
    before, again, after = receiver.requests
    assert before.headers["webhook-id"] == again.headers["webhook-id"]
    assert signers(before, old, new) == [0]
    assert signers(again, old, new) == [1, 0]
    assert signers(after, old, new) == [1, 0]


def test_after_the_overlap_the_new_one_signs_alone_and_the_old_one_is_gone(
    receiver, webhook, rotate, deliver, finish_batch, execute, rows
):
    old, new = webhook[1], rotate().secret
    deliver()
    assert len(rows("SELECT 1 FROM halldetect.webhook_secrets")) == 2
    execute("UPDATE halldetect.webhook_secrets SET expires_at = now() WHERE expires_at IS NOT NULL")
    finish_batch()
    deliver()
    assert signers(receiver.requests[-1], old, new) == [1]
    assert rows("SELECT secret FROM halldetect.webhook_secrets") == [(new,)]


def test_without_an_overlap_the_next_message_has_the_new_signature_alone(
    receiver, webhook, rotate, deliver, finish_batch
):
    new = rotate(timedelta(0)).secret
    finish_batch()
    deliver()
    assert signers(receiver.requests[-1], webhook[1], new) == [1]


def test_a_rotation_whose_answer_was_lost_is_repeated_without_losing_the_receivers_secret(
    receiver, webhook, rotate, deliver, finish_batch, rows
):
    known, lost, new = webhook[1], rotate().secret, rotate(2 * DAY).secret
    finish_batch()
    deliver()
    assert signers(receiver.requests[-1], known, lost, new) == [2, 1, 0]
    ends = rows(
        "SELECT expires_at - now() > interval '36 hours' FROM halldetect.webhook_secrets"
        " ORDER BY id"
    )
    assert ends == [(False,), (True,), (None,)]  # the time of none is lengthened
    rotate(timedelta(hours=1))
    assert rows(
        "SELECT count(*) FROM halldetect.webhook_secrets"
        " WHERE expires_at < now() + interval '2 hours'"
    ) == [(3,)]


def test_so_many_secrets_sign_at_once_and_no_more(webhook, rotate, rows):
    for _ in range(MOST_SECRETS - 1):
        rotate()
    before = rows("SELECT * FROM halldetect.webhook_secrets ORDER BY id")
    with pytest.raises(TooManySecrets, match=f"webhook {webhook[0]} .* {MOST_SECRETS} secrets"):
        rotate()
    assert rows("SELECT * FROM halldetect.webhook_secrets ORDER BY id") == before
    rotate(timedelta(0))  # somebody else knows them: that must always be possible
    rotate()


def test_rotations_at_once_leave_one_secret_without_end(webhook, rotate, rows):
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(rotate) for _ in range(4)]
        secrets = {one.result().secret for one in found}
    assert len(secrets) == 4
    stored = rows("SELECT secret FROM halldetect.webhook_secrets WHERE expires_at IS NULL")
    assert len(stored) == 1
    assert stored[0][0] in secrets


def test_it_is_told_until_when_older_secrets_sign(sessions, webhook, rotate, execute):
    def until():
        with sessions.begin() as session:
            [listed] = list_webhooks(session, before_id=None, limit=5)
        return listed.older_secrets_until

    assert until() is None
    assert rotate().older_secrets_until == until()
    execute("UPDATE halldetect.webhook_secrets SET expires_at = now() WHERE expires_at IS NOT NULL")
    assert until() is None


def test_only_ones_own_are_rotated(sessions, webhook, rows):
    before = rows("SELECT * FROM halldetect.webhook_secrets")
    for number, caller in ((webhook[0], Caller(7)), (99, Caller(sees_all=True))):
        with sessions.begin() as session:
            assert rotate_secret(session, number, DAY, caller=caller) is None
    assert rows("SELECT * FROM halldetect.webhook_secrets") == before


def test_secrets_go_with_their_webhook(sessions, webhook, rotate, rows):
    rotate()
    with sessions.begin() as session:
        assert delete_webhook(session, webhook[0])
    assert rows("SELECT 1 FROM halldetect.webhook_secrets") == []
