"""An extractor without the time that it needs: through real processes, with the language model."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from celery_processes import wait_until

from db.audits import get_audit
from db.line import Stage

pytestmark = pytest.mark.skipif(find_spec("llama_cpp") is None, reason="llama-cpp-python missing")


def test_the_audit_goes_on_with_sentences_and_its_trail_says_so(
    start_celery, submit, wake_ups, states, rows, sessions
):
    [audit] = submit("The mill opened in 1900. Nobody was hurt.", single=True)
    wake_ups.send(Stage.EXTRACTION, audit_id=audit, reason="submitted")
    start_celery("extraction", "nli", extractor="llama", extractor_seconds=0.001)
    wait_until(lambda: states() == [("completed", 2, 0)])
    [(warnings,)] = rows("SELECT warnings FROM trail.audits")
    assert "HALLDETECT_EXTRACTOR_SECONDS" in warnings[0]
    assert rows("SELECT finish, output_tokens FROM trail.generations") == [("time", 0)]
    assert rows("SELECT text, origin FROM trail.claims ORDER BY position") == [
        ("The mill opened in 1900.", "sentence"),
        ("Nobody was hurt.", "sentence"),
    ]
    with sessions.begin() as session:
        assert get_audit(session, audit).warnings == warnings
