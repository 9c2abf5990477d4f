"""A worker that answers a wake-up at once finds what it is about."""

from __future__ import annotations

import pytest

from queues.wake_ups import WakeUps

AUDIT = {"source": "The mill closed in 1998.", "response": "The mill closed."}


@pytest.fixture
def seen_when_sent(monkeypatch, stored):
    """What other transactions see of each table at the moment a wake-up is sent."""
    seen = []

    def send(self, task, queue, ids, reason):
        seen.append({table: stored(table) for table in ("audits", "batches", "rescorings")})
        return "a-task"

    monkeypatch.setattr(WakeUps, "_send", send)
    return seen


def test_wake_ups_are_sent_after_the_commit(client, upload, seen_when_sent):
    assert client.post("/v1/audits", json=AUDIT).status_code == 202
    assert upload(AUDIT, AUDIT).status_code == 202
    scoring = {"policy": "paper", "selection": {}}
    assert client.post("/v1/scorings", json=scoring).status_code == 202
    assert seen_when_sent == [
        {"audits": 1, "batches": 0, "rescorings": 0},
        {"audits": 3, "batches": 1, "rescorings": 0},
        {"audits": 3, "batches": 1, "rescorings": 1},
    ]
