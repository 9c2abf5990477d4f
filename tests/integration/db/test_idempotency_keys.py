"""A repeated request gets the first answer; nothing stays of a request that died."""

from __future__ import annotations

import pytest

from db.idempotency import KeyInProgress, KeyReused, begin, remember

DIGEST, OTHER = b"a" * 32, b"b" * 32


def test_the_first_answer_is_replayed(sessions):
    with sessions.begin() as session:
        assert begin(session, "k", DIGEST) is None
        remember(session, "k", DIGEST, 202, {"location": "/v1/audits/1"}, b"{}")
    with sessions.begin() as session:
        replay = begin(session, "k", DIGEST)
        assert (replay.status, replay.headers, replay.body) == (
            202,
            {"location": "/v1/audits/1"},
            b"{}",
        )
        with pytest.raises(KeyReused):
            begin(session, "k", OTHER)


def test_a_key_in_progress_is_refused_and_a_dead_request_leaves_nothing(sessions):
    with sessions() as dying:
        dying.begin()
        begin(dying, "k", DIGEST)
        remember(dying, "k", DIGEST, 202, {}, b"")
        with sessions.begin() as session, pytest.raises(KeyInProgress):
            begin(session, "k", DIGEST)
        dying.rollback()
    with sessions.begin() as session:
        assert begin(session, "k", DIGEST) is None
