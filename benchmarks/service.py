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
import tempfile
import time
from pathlib import Path

import httpx
import psutil
import redis
from rich.console import Console
from rich.table import Table
from service_audits import large_audits, mixed_audits, small_audits
from service_bench import Bench, Figures, processor_seconds

from cli.stack.ports import free_port
from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from db.migrate import upgrade
from db.policies import seed_builtin_policies
from halldetect.auditor import AuditOptions, Auditor
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.model_loading import load_nli
from halldetect.nli.model import NliModel
from halldetect.scoring.policy import EMBEDDED
from halldetect.settings import Settings
from queues.names import Queue


def measure_verification(bench: Bench, nli: NliModel, audits: int) -> list[Figures]:
    """Compare a worker with the same work in this process."""
    records = mixed_audits(audits)
    settings = Settings()
    auditor = Auditor(
        SentenceExtractor(), nli, EMBEDDED, AuditOptions(token_budget=settings.token_budget)
    )
    auditor.audit(records[0])
    me = psutil.Process()
    processor, began = processor_seconds(me), time.perf_counter()
    results = list(auditor.audit_many(records))
    alone = time.perf_counter() - began
    processor = processor_seconds(me) - processor
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
