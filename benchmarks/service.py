"""What the service adds to the method: ratios within one run, on private servers.

    python benchmarks/service.py [--audits 60] [--lines 50000] [--json]

Three measurements, each printed as a table:

verification
    Audits already extracted, through an NLI worker, against the same audits in one process. Beside
    other work on the machine the times mislead; the processor time a pair does much less.
batches
    Fill and padding as the worker reports them: many small audits, and few large ones.
ingestion
    One JSONL upload: lines a second, peak memory of the API process, messages it left in Redis.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import redis
from rich.console import Console
from rich.table import Table
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from cli.stack.ports import free_port
from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from db.claiming import claim_extraction
from db.engine import make_engine, session_factory
from db.line import Stage
from db.migrate import upgrade
from db.models import ModelKind
from db.policies import seed_builtin_policies
from db.progress import model_id, save_extraction
from db.submission import BatchRefused, BatchUpload
from db.workers import live_workers
from halldetect.auditor import AuditOptions, Auditor
from halldetect.claims.decompose import decompose
from halldetect.claims.model import ExtractionMode
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.context.library import HYPOTHESIS_TOKENS
from halldetect.model_loading import load_nli
from halldetect.nli.model import NliModel
from halldetect.record import Record, make_record, parse_record
from halldetect.scoring.policy import EMBEDDED
from halldetect.settings import Settings
from queues.celery_app import make_app
from queues.names import Queue
from queues.wake_ups import WakeUps

PAIRS = Path(__file__).resolve().parent.parent / "cli" / "demo" / "pairs.jsonl"
Figures = dict[str, float | int | str]


def mixed_audits(count: int) -> list[Record]:
    """Return the shipped pairs, over and over; each response only once."""
    pairs = [parse_record(line) for line in PAIRS.read_bytes().splitlines()]
    return [
        make_record(
            custom_id=f"a{n}",
            source=pairs[n % len(pairs)].source,
            response=f"{pairs[n % len(pairs)].response} This is answer {n}.",
        )
        for n in range(count)
    ]


def small_audits(count: int) -> list[Record]:
    """Return audits of one short claim against two sentences."""
    return [
        make_record(
            custom_id=f"s{n}",
            source=f"Ward {n} has {n % 40} beds. It opened in {1900 + n % 90}.",
            response=f"Ward {n} opened in {1900 + n % 80}.",
        )
        for n in range(count)
    ]


def large_audits(count: int) -> list[Record]:
    """Return audits of ten claims against a source of a hundred sentences."""
    draw = random.Random(1)
    places = ["mill", "bridge", "school", "harbour", "market", "tower", "station", "library"]
    sentences = [
        f"The {draw.choice(places)} of district {n} was rebuilt in {1900 + n} after a long debate."
        for n in range(100)
    ]
    return [
        make_record(
            custom_id=f"l{n}",
            source=" ".join(sentences),
            response=" ".join(draw.sample(sentences, 10)),
        )
        for n in range(count)
    ]


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
            began = _processor_seconds(process)
            self._wait_for("SELECT bool_and(status = 'completed')", batch_id)
            processor = _processor_seconds(process) - began
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


def measure_verification(bench: Bench, nli: NliModel, audits: int) -> list[Figures]:
    """Compare a worker with the same work in this process."""
    records = mixed_audits(audits)
    settings = Settings()
    auditor = Auditor(
        SentenceExtractor(), nli, EMBEDDED, AuditOptions(token_budget=settings.token_budget)
    )
    auditor.audit(records[0])
    me = psutil.Process()
    processor, began = _processor_seconds(me), time.perf_counter()
    results = list(auditor.audit_many(records))
    alone = time.perf_counter() - began
    processor = _processor_seconds(me) - processor
    pairs = sum(len(r.claims) * len(r.matrix.spans) for r in results if r.matrix is not None)
    service = bench.verified(records, nli)
    seconds = float(service["seconds"])
    return [
        {
            "where": "one process",
            "audits/s": audits / alone,
            "pairs/s": pairs / alone,
            "ratio": 1.0,
            "CPU ms/pair": 1000 * processor / pairs,
        },
        {
            "where": "the service",
            "audits/s": audits / seconds,
            "pairs/s": float(service["pairs"]) / seconds,
            "ratio": alone / seconds,
            "CPU ms/pair": 1000 * float(service["processor"]) / float(service["pairs"]),
        },
    ]


def measure_batches(bench: Bench, nli: NliModel) -> list[Figures]:
    """Report fill and padding for two shapes of work."""
    rows = []
    for shape, records in (("300 small", small_audits(300)), ("3 large", large_audits(3))):
        figures = bench.verified(records, nli)
        rows.append(
            {"audits": shape, **{key: figures[key] for key in ("pairs", "fill", "padding")}}
        )
    return rows


def measure_ingestion(bench: Bench, lines: int) -> list[Figures]:
    """Upload one file while no worker runs, and count what the API sent."""
    path = bench.folder / "upload.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for n in range(lines):
            source = f"Ward {n % 5000} has {n % 40} beds. It opened in {1900 + n % 90}. " * 6
            record = {"custom_id": f"i{n}", "source": source, "response": f"Ward {n} opened."}
            file.write(json.dumps(record) + "\n")
    port = free_port()
    api = ["uvicorn", "api.app:create_app", "--factory", "--port", str(port)]
    with bench.process("api", *api) as process, redis.Redis.from_url(bench.redis_url) as broker:
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600)
        while True:
            try:
                client.get("/readyz").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        broker.flushall()
        idle = process.memory_info().rss
        began = time.perf_counter()
        with path.open("rb") as body:
            answer = client.post(
                "/v1/batches", content=body, headers={"Content-Type": "application/jsonl"}
            )
        seconds = time.perf_counter() - began
        answer.raise_for_status()
        peak = _peak_memory(process)
        messages = sum(int(broker.llen(queue.value)) for queue in Queue)
    return [
        {
            "lines": lines,
            "lines/s": lines / seconds,
            "MiB idle": idle / 2**20,
            "MiB peak": peak / 2**20,
            "messages": messages,
        }
    ]


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak_memory(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(row.split()[1] for row in status.splitlines() if "VmHWM" in row)) * 1024


def print_table(console: Console, title: str, rows: list[Figures]) -> None:
    """Print figures, one row each."""
    table = Table(title=title, title_justify="left")
    for key in rows[0]:
        table.add_column(key, justify="right")
    for row in rows:
        table.add_row(*(f"{v:,.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)


def main() -> None:
    """Run the command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=60)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        postgres, valkey = PostgresServer(folder / "postgres"), ValkeyServer(folder / "valkey")
        postgres.start()
        valkey.start()
        try:
            upgrade(postgres.url)
            bench = Bench(folder, postgres.url, valkey.url)
            with bench.sessions.begin() as session:
                seed_builtin_policies(session)
            nli = load_nli(Settings())
            found = {
                "verification": measure_verification(bench, nli, options.audits),
                "batches": measure_batches(bench, nli),
                "ingestion": measure_ingestion(bench, options.lines),
            }
        finally:
            valkey.stop()
            postgres.stop()
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for title, rows in found.items():
        print_table(Console(), title, rows)


if __name__ == "__main__":
    main()
