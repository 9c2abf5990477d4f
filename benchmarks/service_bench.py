"""Private servers, and work that is measured on them in processes of the service."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from db.claiming import claim_extraction
from db.engine import make_engine, session_factory
from db.extractions import save_extraction
from db.line import Stage
from db.models import ModelKind
from db.provenances import model_id
from db.submission import BatchRefused, BatchUpload
from db.workers import live_workers
from halldetect.claims.decompose import decompose
from halldetect.claims.model import ExtractionMode
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.context.library import HYPOTHESIS_TOKENS
from halldetect.nli.model import NliModel
from halldetect.record import Record
from queues.celery_app import make_app
from queues.wake_ups import WakeUps

Figures = dict[str, float | int | str]


class Bench:
    """Private servers, and the processes of the service on them."""

    def __init__(self, folder: Path, database_url: str, redis_url: str) -> None:
        self.folder = folder
        self.redis_url = redis_url
        self.database_url = database_url
        self.sessions: sessionmaker[Session] = session_factory(make_engine(database_url))

    @contextmanager
    def process(self, name: str, *command: str) -> Iterator[psutil.Process]:
        """Run a Python module of the service until the block ends."""
        environment = {
            **os.environ,
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "HALLDETECT_EXTRACTOR": "sentences",
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(  # nosec B603  # our own commands, without a shell
                [sys.executable, "-m", *command], env=environment, stdout=log, stderr=log
            )
            try:
                yield psutil.Process(child.pid)
            finally:
                child.terminate()
                child.wait(60)

    def store_extracted(self, records: list[Record], nli: NliModel) -> int:
        """Submit a batch and put it through extraction in this process."""
        with (
            self.sessions.begin() as session,
            BatchUpload(session, default_policy="embedded", max_errors=1) as upload,
        ):
            for line, record in enumerate(records, start=1):
                upload.add(line, record)
            accepted = upload.finish()
        if isinstance(accepted, BatchRefused):
            raise ValueError(f"the batch was refused: {accepted.errors}")
        extractor = SentenceExtractor()
        with self.sessions.begin() as session:
            claimed = claim_extraction(
                session, "bench", lease_seconds=3600, max_audits=len(records)
            )
            extractor_id = model_id(session, ModelKind.EXTRACTOR, extractor.provenance.to_json())
        for audit in claimed:
            claims = decompose(
                audit.response,
                extractor,
                count_tokens=lambda words: len(nli.tokenizer.encode([words])[0].ids),
                max_tokens=HYPOTHESIS_TOKENS,
            )
            with self.sessions.begin() as session:
                save_extraction(
                    session,
                    audit.lease,
                    claims,
                    response=audit.response,
                    mode=ExtractionMode.COVERED,
                    model_id=extractor_id,
                )
        return accepted.batch_id

    def verified(self, records: list[Record], nli: NliModel) -> Figures:
        """Let a worker verify extracted audits; return its time and its own counters."""
        batch_id = self.store_extracted(records, nli)
        worker = ["celery", "-A", "worker.app", "worker", "-Q", "nli", "--pool=threads"]
        WakeUps(make_app(self.redis_url, "bench")).send(
            Stage.VERIFICATION, batch_id=batch_id, reason="submitted"
        )
        name = ["--concurrency=1", "-n", f"nli{batch_id}@bench"]
        with self.process("nli", *worker, *name) as process:
            self._wait_for("SELECT count(verification_started_at) > 0", batch_id)
            began = processor_seconds(process)
            self._wait_for("SELECT bool_and(status = 'completed')", batch_id)
            processor = processor_seconds(process) - began
            time.sleep(1)
            counters = self._counters(f"nli{batch_id}@bench", len(records))
        with self.sessions.begin() as session:
            seconds = session.scalar(
                text(
                    "SELECT extract(epoch FROM max(finished_at) - min(verification_started_at))"
                    " FROM halldetect.audits WHERE batch_id = :id"
                ),
                {"id": batch_id},
            )
        return {**counters, "seconds": float(seconds or 0), "processor": processor}

    def _counters(self, name: str, audits: int) -> Figures:
        """Wait for the worker's next report, which is a heartbeat away."""
        for _ in range(120):
            with self.sessions.begin() as session:
                workers = [w for w in live_workers(session) if w.name.startswith(name)]
            if workers and workers[0].counters.audits >= audits:
                counted = workers[0].counters
                return {
                    "pairs": counted.pairs,
                    "fill": counted.padded_tokens / counted.budget_tokens,
                    "padding": 1 - counted.tokens / counted.padded_tokens,
                }
            time.sleep(0.5)
        raise RuntimeError(f"{name} never reported {audits} audits; see {self.folder}")

    def _wait_for(self, condition: str, batch_id: int) -> None:
        statement = text(f"{condition} FROM halldetect.audits WHERE batch_id = :id")
        while True:
            with self.sessions.begin() as session:
                if session.scalar(statement, {"id": batch_id}):
                    return
            time.sleep(0.2)


def processor_seconds(process: psutil.Process) -> float:
    """Return the processor time of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)
