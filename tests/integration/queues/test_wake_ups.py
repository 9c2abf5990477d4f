"""Messages on a real broker: what is in them, how many wait, and a broker that is gone."""

from __future__ import annotations

import base64
import json
import socket
import threading
from contextlib import ExitStack, suppress

import pytest
import redis

from cli.stack.valkey import ValkeyServer
from db.line import Stage
from queues import wake_ups as wake_ups_module
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


def test_a_broker_that_is_gone_is_one_clear_error(refusing_port):
    wake_ups = WakeUps(make_app(f"redis://:secret@127.0.0.1:{refusing_port}/0", "test"))
    with pytest.raises(QueueUnavailable, match="Redis did not take a wake-up") as error:
        wake_ups.send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    assert "secret" not in str(error.value)
    with pytest.raises(QueueUnavailable, match="Redis does not answer"):
        wake_ups.queued(Queue.NLI)


@pytest.fixture
def silent_server():
    """A server that never answers, and a function to how many connections were made meanwhile."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setblocking(False)

        def made():
            count = 0
            with suppress(BlockingIOError):  # there are no more
                while True:
                    stack.enter_context(listener.accept()[0])
                    count += 1
            return count

        yield listener.getsockname()[1], made


def test_a_broker_that_stands_still_is_not_waited_for_by_every_sender(silent_server, monkeypatch):
    port, connections_made = silent_server
    monkeypatch.setattr(wake_ups_module, "_SILENCE", 600)
    app = make_app(f"redis://127.0.0.1:{port}/0", "test")
    app.conf.broker_transport_options |= {"socket_timeout": 1}
    wake_ups = WakeUps(app)
    with pytest.raises(QueueUnavailable, match="Redis did not take a wake-up"):
        wake_ups.send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    assert connections_made() > 0
    for _ in range(5):
        with pytest.raises(QueueUnavailable, match="Redis did not answer a moment ago"):
            wake_ups.send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    assert connections_made() == 0


def is_sent(wake_ups):
    try:
        wake_ups.send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    except QueueUnavailable:
        return False
    return True


def test_a_broker_that_was_down_is_used_again_when_it_is_back(tmp_path):
    server = ValkeyServer(tmp_path / "valkey")
    server.prepare()
    wake_ups = WakeUps(make_app(server.url, "test"))
    with pytest.raises(QueueUnavailable):
        wake_ups.send(Stage.EXTRACTION, batch_id=1, reason="submitted")
    server.start()
    try:
        while not is_sent(wake_ups):
            threading.Event().wait(0.05)
        assert wake_ups.queued(Queue.EXTRACTION) == 1
    finally:
        server.stop()
