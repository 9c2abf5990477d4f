"""Messages on a real broker: what is in them, how many wait, and a broker that is gone."""

from __future__ import annotations

import base64
import json

import pytest
import redis

from cli.stack.ports import free_port
from db.line import Stage
from queues.celery_app import make_app
from queues.names import Queue, Task, queue_of
from queues.wake_ups import QueueUnavailable, WakeUps


def test_a_wake_up_holds_ids_and_nothing_else(redis_url):
    wake_ups = WakeUps(make_app(redis_url, "test"))
    wake_ups.send(Stage.EXTRACTION, batch_id=12, reason="submitted")
    wake_ups.send(Stage.VERIFICATION, audit_id=7, reason="extracted")
    wake_ups.send(Stage.VERIFICATION, reason="swept")
    assert [wake_ups.queued(queue) for queue in Queue] == [1, 2, 0]
    with redis.Redis.from_url(redis_url) as client:
        message = json.loads(client.lindex(queue_of(Stage.EXTRACTION).value, 0))
    assert message["content-type"] == "application/json"
    assert message["headers"]["task"] == Task.EXTRACT
    arguments, named, _ = json.loads(base64.b64decode(message["body"]))
    assert (arguments, named) == ([], {"batch_id": 12, "reason": "submitted"})


def test_no_reply_queue_and_no_result_is_left_behind(redis_url):
    WakeUps(make_app(redis_url, "test")).send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    with redis.Redis.from_url(redis_url) as client:
        keys = {key.decode() for key in client.scan_iter()}
    assert {key for key in keys if not key.startswith("_kombu.binding.")} == {"extraction"}


def test_a_broker_that_is_gone_is_one_clear_error():
    wake_ups = WakeUps(make_app(f"redis://:secret@127.0.0.1:{free_port()}/0", "test"))
    with pytest.raises(QueueUnavailable, match="Redis did not take a wake-up") as error:
        wake_ups.send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    assert "secret" not in str(error.value)
    with pytest.raises(QueueUnavailable, match="Redis does not answer"):
        wake_ups.queued(Queue.NLI)
