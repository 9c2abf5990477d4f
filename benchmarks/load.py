"""The running service under mixed traffic: times by kind of request, and what it cost the service.

    python benchmarks/load.py [--clients 16] [--seconds 60] [--pause 0.1] [--url URL] [--json]

Without `--url` it starts a `halldetect up` of its own in a temporary folder, with the extractor
that needs no model, and tells the memory of the API and the connections to Postgres too. With
`--url` it loads the service that is there, whose API key, if it wants one, is HALLDETECT_API_KEY;
what it submits stays there. Exit code 1 if any answer was a 5xx, wrong or lost.

A request that is answered 429 is sent again after the time that Retry-After names: such answers
are counted, and are no faults.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from load_traffic import Client, Notes
from own_stack import OwnStack
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from cli.stack.run_file import RunningStack

_MOST_CLIENTS, _MOST_SECONDS = 200, 600
_START_SECONDS = 300.0
_LOOK_SECONDS = 1.0
_ENDS = ("completed", "failed", "cancelled")
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'halldetect'"


@dataclass
class Watch:
    """Looks at the service once a second while it is under load.

    Parameters
    ----------
    url, key : str, str or None
        The API.
    stack : RunningStack or None
        Our own stack, whose processes and database can be looked at too.
    """

    url: str
    key: str | None
    stack: RunningStack | None
    oldest_seconds: float = 0.0
    most_waiting: int = 0
    most_connections: int = 0
    memory: list[int] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def audits(self) -> dict[str, int]:
        """Return how many audits the service has, by status."""
        found = self._figures("halldetect_audits")
        return {labels["status"]: int(value) for labels, value in found}

    def look(self) -> None:
        """Look once."""
        waiting = self._figures("halldetect_waiting_audits")
        self.most_waiting = max(self.most_waiting, int(sum(value for _, value in waiting)))
        oldest = self._figures("halldetect_oldest_waiting_seconds")
        self.oldest_seconds = max(self.oldest_seconds, *(value for _, value in oldest))
        if self.stack is not None:
            api = next(child for child in self.stack.children if child.name == "api")
            self.memory.append(psutil.Process(api.pid).memory_info().rss)
            with psycopg.connect(self.stack.database_url) as connection:
                (count,) = connection.execute(_CONNECTIONS).fetchone() or (0,)
            self.most_connections = max(self.most_connections, count)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look once a second until the block ends."""
        thread = threading.Thread(target=self._loop)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _loop(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            self.look()

    def _figures(self, name: str) -> list[tuple[dict[str, str], float]]:
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        answer = httpx.get(f"{self.url}/metrics", headers=headers, timeout=60)
        answer.raise_for_status()
        return [
            (sample.labels, sample.value)
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name == name
        ]


def run_load(watch: Watch, *, clients: int, seconds: float, pause: float) -> dict[str, Any]:
    """Load a service and return the report, as JSON values."""
    notes = Notes()
    before = watch.audits()
    watch.look()
    began = time.monotonic()
    workers = [
        threading.Thread(
            target=Client(number, watch.url, watch.key, notes, pause=pause).work,
            args=(began + seconds,),
        )
        for number in range(clients)
    ]
    with watch.running():
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        took = time.monotonic() - began
    watch.look()
    after = watch.audits()
    requests = {kind: sum(statuses.values()) for kind, statuses in notes.statuses.items()}
    ended = {name: after[name] - before[name] for name in _ENDS}
    return {
        "clients": clients,
        "seconds": took,
        "requests": sum(requests.values()),
        "requests_per_second": sum(requests.values()) / took,
        "kinds": {kind: _kind(notes, kind, took) for kind in sorted(requests)},
        "faults": notes.fault_count,
        "first_faults": notes.faults,
        "limited": sum(statuses[429] for statuses in notes.statuses.values()),
        "limited_seconds": notes.limited_seconds,
        "mebibytes_read": notes.bytes_read / 2**20,
        "audits": {
            "submitted": notes.submitted,
            "stored": sum(after.values()) - sum(before.values()),
            "ended": sum(ended.values()),
            **ended,
            "most_waiting": watch.most_waiting,
            "oldest_waiting_seconds": watch.oldest_seconds,
        },
        "api_mebibytes": _memory(watch.memory),
        "most_connections": watch.most_connections if watch.stack is not None else None,
    }


def _kind(notes: Notes, kind: str, took: float) -> dict[str, Any]:
    seconds, statuses = sorted(notes.seconds[kind]), notes.statuses[kind]
    count = sum(statuses.values())
    return {
        "requests": count,
        "per_second": count / took,
        **{f"p{percent}_ms": _percentile(seconds, percent) for percent in (50, 95, 99)},
        "max_ms": _percentile(seconds, 100),
        "statuses": {str(status): number for status, number in sorted(statuses.items())},
    }


def _percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return the value in milliseconds that so many of a hundred do not exceed."""
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] * 1000


def _memory(samples: Sequence[int]) -> dict[str, float] | None:
    if not samples:
        return None
    named = {"before": samples[0], "most": max(samples), "after": samples[-1]}
    return {name: size / 2**20 for name, size in named.items()}


def print_report(report: dict[str, Any]) -> None:
    """Print a report for people."""
    console = Console(width=120)
    title = f"{report['clients']} clients for {report['seconds']:.0f} s"
    table = Table(title=title, title_justify="left")
    for column in ("request", "number", "a second", "p50 ms", "p95 ms", "p99 ms", "max ms"):
        table.add_column(column, justify="left" if column == "request" else "right")
    table.add_column("answers")
    for kind, row in report["kinds"].items():
        times = [row[name] for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")]
        table.add_row(
            kind,
            f"{row['requests']:,}",
            f"{row['per_second']:.1f}",
            *("" if value is None else f"{value:,.0f}" for value in times),
            ", ".join(f"{status}: {number:,}" for status, number in row["statuses"].items()),
        )
    console.print(table)
    audits, memory = report["audits"], report["api_mebibytes"]
    console.print(
        f"{report['requests']:,} requests, {report['requests_per_second']:.1f} a second; "
        f"{report['limited']:,} answered 429; {report['faults']:,} faults; "
        f"{report['mebibytes_read']:.1f} MiB read"
    )
    console.print(
        f"{audits['submitted']:,} audits submitted, {audits['ended']:,} ended meanwhile; at most "
        f"{audits['most_waiting']:,} waited, for {audits['oldest_waiting_seconds']:.0f} s"
    )
    if memory is not None:
        console.print(
            f"API: {memory['before']:.0f} MiB before, at most {memory['most']:.0f}, "
            f"{memory['after']:.0f} after; at most {report['most_connections']} connections to "
            "Postgres, of all processes"
        )
    for fault in report["first_faults"]:
        console.print(f"fault: {fault}", markup=False)


def _bounded(most: int) -> Any:
    def read(text: str) -> int:
        number = int(text)
        if not 1 <= number <= most:
            raise argparse.ArgumentTypeError(f"must be from 1 to {most}")
        return number

    return read


def main() -> int:
    """Run the command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--url", help="default: a stack of its own")
    parser.add_argument("--clients", type=_bounded(_MOST_CLIENTS), default=16)
    parser.add_argument("--seconds", type=_bounded(_MOST_SECONDS), default=60)
    parser.add_argument("--pause", type=float, default=0.1, help="mean seconds between requests")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = {name: getattr(options, name) for name in ("clients", "seconds", "pause")}
    if options.url:
        watch = Watch(options.url.rstrip("/"), os.environ.get("HALLDETECT_API_KEY"), None)
        report = run_load(watch, **sizes)
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            OwnStack(Path(folder) / "home") as own_stack,
        ):
            stack = own_stack.wait_until_ready(seconds=_START_SECONDS)
            report = run_load(Watch(stack.api_url, None, stack), **sizes)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report)
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
