"""The bundled encoder behind the whole pipeline, loaded once."""

from __future__ import annotations

import os
import socket

import pytest

from halldetect.auditor import AuditOptions, Auditor
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.model_loading import load_nli
from halldetect.record import make_record
from halldetect.scoring.policy import PAPER
from halldetect.settings import Settings

# As `halldetect.claims.llama_extractor` does, but before a test loads torch and OpenMP with it:
# threads that spin while they wait starve each other on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.fixture
def refusing_port():
    """A port that refuses connections, and that nobody else can take meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(scope="session")
def make_auditor():
    """Return a function: options to an auditor over the one loaded encoder."""
    nli = load_nli(Settings(threads=2))
    return lambda **options: Auditor(SentenceExtractor(), nli, PAPER, AuditOptions(**options))


@pytest.fixture(scope="session")
def auditor(make_auditor):
    return make_auditor()


@pytest.fixture(scope="session")
def audit(auditor):
    """Return a function: source and response to the audit's trail."""
    return lambda source, response: auditor.audit(make_record(source=source, response=response))
