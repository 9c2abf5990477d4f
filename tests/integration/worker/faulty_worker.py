"""The workers' app with faults, for processes of their own: ``celery -A faulty_worker``.

``FAULTS_FOLDER`` is a folder that a test and its processes share. Over a batch with the word
"ferry" the encoder of such a worker makes the file ``waiting-<process id>``, and waits until there
is the file ``go``; a batch with the word "heron" kills it while there is the file ``deadly``. Its
extractor waits in the same way over a text with the word "barge", until there is ``go-barge``.
``FAULTS_HUNG_SECONDS`` is how long a call of a model may take, ``FAULTS_RENEWALS_A_LEASE`` how
often a lease is renewed before it runs out, and ``FAULTS_VISIBILITY_SECONDS`` the time after which
the broker gives a message out again.
"""

from __future__ import annotations

import os
import signal
import threading
from math import inf
from pathlib import Path

from worker import lease_renewal, models, watchdog
from worker.app import app

_FOLDER = Path(os.environ["FAULTS_FOLDER"])


def _wait_for(name):
    (_FOLDER / f"waiting-{os.getpid()}").touch()
    while not (_FOLDER / name).exists():
        threading.Event().wait(0.05)


class _FaultyExtractor:
    def __init__(self, extractor):
        self._extractor = extractor
        self.provenance = extractor.provenance

    def extract(self, window, max_claims, ends_at=inf):
        if "barge" in window:
            _wait_for("go-barge")
        return self._extractor.extract(window, max_claims, ends_at)


class _FaultyEncoder:
    def __init__(self, nli):
        self._nli = nli
        self.tokenizer = nli.tokenizer
        self.max_tokens = nli.max_tokens
        self.provenance = nli.provenance

    def logits(self, batch):
        if self._has(batch, "heron") and (_FOLDER / "deadly").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        if self._has(batch, "ferry"):
            _wait_for("go")
        return self._nli.logits(batch)

    def _has(self, batch, word):
        (token,) = self.tokenizer.encode([word])[0].ids
        return bool((batch.input_ids == token).any())


_load_nli = models.load_nli
models.load_nli = lambda settings: _FaultyEncoder(_load_nli(settings))
_load_extractor = models.load_extractor
models.load_extractor = lambda *some, **more: _FaultyExtractor(_load_extractor(*some, **more))
_renewals = os.environ.get("FAULTS_RENEWALS_A_LEASE", lease_renewal._RENEWALS_A_LEASE)
lease_renewal._RENEWALS_A_LEASE = int(_renewals)
watchdog.HUNG_SECONDS = float(os.environ.get("FAULTS_HUNG_SECONDS", watchdog.HUNG_SECONDS))
_visibility = os.environ.get("FAULTS_VISIBILITY_SECONDS")
if _visibility is not None:
    # Celery looks for such messages every hundred seconds; here, each second.
    app.conf.broker_transport_options = {
        **app.conf.broker_transport_options,
        "visibility_timeout": int(_visibility),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
