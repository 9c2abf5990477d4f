"""A worker as Celery starts it, and the lines it logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class CeleryWorker:
    """One worker process (a queue, perhaps "-2" after it) or beat, and the lines it logged."""

    def __init__(self, name, environment, log):
        self.log = log
        queue = name.partition("-")[0]
        options = ["-Q", queue, "-n", f"{name}@%h", "--without-mingle", "--without-gossip"]
        if name == "beat":
            options = ["--schedule", log.with_suffix(".schedule"), "--pidfile="]
        command = ["-m", "celery", "-A", "worker.app", "beat" if name == "beat" else "worker"]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command, "-l", "INFO", *options],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def events(self, name):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in parsed if line["event"].startswith(name)]

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait()


def environment_of(database, redis_url, **settings):
    """Return what a process of the service finds in its environment."""
    return {
        **{n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")},
        "DATABASE_URL": database,
        "REDIS_URL": redis_url,
        "HALLDETECT_EXTRACTOR": "sentences",
        "HALLDETECT_THREADS": "1",
        **{f"HALLDETECT_{name.upper()}": str(value) for name, value in settings.items()},
    }


def wait_until(holds):
    while not holds():
        threading.Event().wait(0.1)
