"""Audits in a database of their own, and settings that lead the commands to it."""

from __future__ import annotations

import pytest
from stored_audits import complete_waiting, submit_batch

from halldetect.settings import load_settings


@pytest.fixture
def settings(database, tmp_path):
    return load_settings(database_url=database, home=tmp_path, extractor="sentences")


@pytest.fixture
def store(sessions, auditor):
    """Audits responses as a batch of the service and returns its id."""

    def submit(*responses, **fields):
        batch_id = submit_batch(sessions, *responses, **fields)
        complete_waiting(sessions, auditor)
        return batch_id

    return submit
