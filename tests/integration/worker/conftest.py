"""Worker processes on real servers: in this process with a model that can be tripped, or outside.

The model is the bundled encoder; `HookedEncoder` only calls a function before every forward pass,
so that a test can take a lease away, lose the database or fail at a known place.
"""

from __future__ import annotations

from math import inf

import pytest
from celery_processes import CeleryProcess, worker_environment
from sqlalchemy import text

from db.models import WorkerState
from db.submission import BatchUpload, submit_audit
from halldetect.auditor import AuditOptions, read_source
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.record import make_record
from halldetect.settings import Settings
from queues.celery_app import make_app
from queues.wake_ups import WakeUps
from worker import process as process_module
from worker.models import ExtractionModels, LoadedModels, VerificationModels
from worker.process import WorkerProcess
from worker.source_cache import SourceCache

SOURCE = "The mill opened in 1900. It closed in 1950 after a fire. Nobody was hurt."


class HookedEncoder:
    """The encoder, and a function that is called with each batch before it is computed."""

    def __init__(self, nli):
        self._nli = nli
        self.tokenizer = nli.tokenizer
        self.max_tokens = nli.max_tokens
        self.provenance = nli.provenance
        self.before = lambda batch: None

    def logits(self, batch):
        self.before(batch)
        return self._nli.logits(batch)

    def has_word(self, batch, word):
        """Tell whether a batch holds a word, which must be one token of the vocabulary."""
        (token,) = self.tokenizer.encode([word])[0].ids
        return bool((batch.input_ids == token).any())


class HookedExtractor(SentenceExtractor):
    """The extractor without a model, and a function that is called before every answer."""

    def __init__(self):
        self.before = lambda window: None

    def extract(self, window, max_claims, ends_at=inf):
        self.before(window)
        return super().extract(window, max_claims, ends_at)


@pytest.fixture
def encoder(auditor):
    return HookedEncoder(auditor.nli)


@pytest.fixture
def extractor():
    return HookedExtractor()


@pytest.fixture
def wake_ups(redis_url):
    return WakeUps(make_app(redis_url, "test"))


@pytest.fixture
def start_worker(database, wake_ups, encoder, extractor, monkeypatch):
    """Return a function: queues and settings to a worker process whose models are loaded.

    A run has time for everything that waits, on a machine that stands still for a while, too. The
    thread that loads has done with the database, unless a test holds it up and does not wait.
    """
    models = LoadedModels(
        ExtractionModels(extractor, encoder.tokenizer),
        VerificationModels(
            encoder, SourceCache(lambda text: read_source(text, encoder, AuditOptions()))
        ),
    )
    monkeypatch.setattr(process_module, "load_models", lambda settings, stages, check: models)
    started = []

    def start(*queues, waits=True, **settings):
        process = WorkerProcess(
            Settings(extractor="sentences", **{"run_seconds": 600, **settings}),
            database_url=database,
            wake_ups=wake_ups,
            node=f"{queues[0]}@test",
            queues=queues,
            on_able=lambda is_able: None,
        )
        process.start()
        started.append(process)
        if waits:
            process._models.wait()
        return process

    yield start
    for process in started:
        process.stop()


def _worker(name):
    command = ["worker", "-Q", name.partition("-")[0], "-n", f"{name}@%h", "-l", "INFO"]
    return [*command, "--without-mingle", "--without-gossip"]


def _beat(log):
    return ["beat", "-l", "INFO", "--schedule", log.with_suffix(".schedule"), "--pidfile="]


@pytest.fixture
def start_celery(database, redis_url, tmp_path):
    """Return a function: names of workers (a queue, perhaps "-2" after it) to their processes.

    "beat" is no worker, but the clock.
    """
    started = []

    def start(*names, app="worker.app", database=database, variables=None, **settings):
        environment = worker_environment(database, redis_url, **settings) | (variables or {})
        workers = []
        for name in names:
            log = tmp_path / f"{name}.{len(started)}.log"
            command = _beat(log) if name == "beat" else _worker(name)
            workers.append(CeleryProcess(app, command, environment, log))
            started.append(workers[-1])
        return workers

    yield start
    for worker in started:
        worker.kill()


@pytest.fixture
def faults(tmp_path):
    """The folder through which a test and its faulty workers talk."""
    folder = tmp_path / "faults"
    folder.mkdir()
    return folder


@pytest.fixture
def start_faulty(start_celery, faults):
    """Return a function: names of faulty workers to their processes; see `faulty_worker`."""

    def start(*names, variables=None, **settings):
        variables = {"FAULTS_FOLDER": str(faults), **(variables or {})}
        return start_celery(*names, app="faulty_worker", variables=variables, **settings)

    return start


@pytest.fixture
def is_waiting(faults):
    """Return a function that tells whether a faulty worker waits in its model."""
    return lambda worker: (faults / f"waiting-{worker.process.pid}").exists()


@pytest.fixture
def submit(sessions):
    """Return a function: responses to the id of their batch, or to ids of single audits."""

    def submit(*responses, source=SOURCE, single=False, **fields):
        records = [
            make_record(source=source, response=response, custom_id=f"r{number}", **fields)
            for number, response in enumerate(responses, start=1)
        ]
        with sessions.begin() as session:
            if single:
                return [submit_audit(session, record, "embedded") for record in records]
            with BatchUpload(session, default_policy="embedded", max_errors=10) as upload:
                for line, record in enumerate(records, start=1):
                    upload.add(line, record)
                return upload.finish().batch_id

    return submit


@pytest.fixture
def rows(sessions):
    """Return a function: SQL to rows."""

    def rows(statement, **parameters):
        with sessions.begin() as session:
            return [tuple(row) for row in session.execute(text(statement), parameters)]

    return rows


@pytest.fixture
def states(rows):
    """Return a function to (status, attempts, faults) of all audits, in order."""
    return lambda: rows("SELECT status, attempts, faults FROM halldetect.audits ORDER BY id")


@pytest.fixture
def nothing_is_held(rows):
    """Return a function that tells whether no audit is under lease."""
    return lambda: (
        rows("SELECT count(*) FROM halldetect.audits WHERE lease_owner IS NOT NULL") == [(0,)]
    )


@pytest.fixture
def worker_rows(rows):
    """Return a function to (state, error) of every worker that reports."""
    return lambda: [
        (WorkerState(state), error)
        for state, error in rows("SELECT state, error FROM halldetect.workers ORDER BY name")
    ]
