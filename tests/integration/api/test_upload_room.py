"""Uploads in progress share a bound on the disk, and give back what they took."""

from __future__ import annotations

import json

import pytest
from api_process import ApiProcess, wait_until

MIB = 1 << 20
JSONL = {"Content-Type": "application/jsonl"}


def test_whoever_finds_no_room_is_told_when_to_come_again(make_client, record, stored):
    client = make_client(max_upload_bytes=10_000, max_spooled_bytes=20_000)
    line = json.dumps(record("a")).encode() + b"\n"
    others = client.app.state.service.upload_room
    others.take(20_000 - len(line) + 1)  # what other uploads hold
    for _ in range(3):
        answer = client.post("/v1/batches", content=line, headers=JSONL)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "30"
        assert "20,000 bytes (HALLDETECT_MAX_SPOOLED_BYTES)" in answer.json()["detail"]
    assert stored("batches") == 0
    assert client.post("/v1/audits", json=record("b")).status_code == 202
    others.give_back(1)
    for _ in range(3):
        assert client.post("/v1/batches", content=line, headers=JSONL).status_code == 202


@pytest.fixture
def api(tmp_path, database, redis_url):
    limits = {"max_upload_bytes": 4 * MIB, "max_spooled_bytes": 5 * MIB}
    api = ApiProcess(tmp_path, database, redis_url, **limits)
    try:
        api.wait_until_it_answers()
        yield api
    finally:
        api.stop()


def test_clients_that_vanish_and_uploads_that_are_refused_give_back_their_room(api):
    head = (
        "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\n"
        f"Content-Length: {4 * MIB}\r\n\r\n"
    )
    for _ in range(5):
        with api.connect() as connection:
            connection.sendall(head.encode() + b" " * 3 * MIB)
    wait_until(lambda: api.connections_held() == 0)
    for _ in range(5):  # without any record: it is read to its end, and refused
        answer = api.request("POST", "/v1/batches", b" " * 4 * MIB, JSONL)
        assert answer[0] == 422, answer
