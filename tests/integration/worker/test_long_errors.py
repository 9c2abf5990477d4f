"""An error that quotes a whole document, and worse: what is stored of it is bounded."""

from __future__ import annotations

import pytest

from db.line import Stage
from db.storable_texts import LONGEST_ERROR

ODD = "\0\ud800" + "It quotes the document. " * 10_000


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_audit_fails_with_the_begin_of_it(start_worker, submit, extractor, rows, attempts):
    submit("The mill opened in 1900.")

    def fail(window):
        if "mill" in window:  # the worker asks about a text of its own whether all is lost
            raise RuntimeError(ODD)

    extractor.before = fail
    process = start_worker("extraction", max_attempts=attempts)
    for _ in range(attempts):
        process.run(Stage.EXTRACTION)
    [(status, faults, error)] = rows("SELECT status, faults, error FROM halldetect.audits")
    assert (status, faults) == ("failed", attempts)
    assert len(error) == LONGEST_ERROR
    assert "RuntimeError: \ufffd\\ud800It quotes the document." in error
    assert error.endswith(" characters)")
