"""Celery's processes, each started as on any box, and the lines they log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def worker_environment(database, redis_url, **settings):
    """Return the variables of a process of the service."""
    return {
        **{n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")},
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)]),
        "DATABASE_URL": database,
        "REDIS_URL": redis_url,
        "HALLDETECT_EXTRACTOR": "sentences",
        "HALLDETECT_THREADS": "1",
        **{f"HALLDETECT_{name.upper()}": str(value) for name, value in settings.items()},
    }


def entries(log):
    """Return the entries of a log as far as they are whole: the last line may be half written."""
    written = log.read_text(encoding="utf-8", errors="replace")
    lines = written[: written.rfind("\n") + 1].splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


class CeleryProcess:
    """One process: ``celery -A app command``."""

    def __init__(self, app, command, environment, log):
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", app, *command],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def events(self, name):
        """Return the log entries whose event begins with `name`."""
        return [entry for entry in entries(self.log) if entry["event"].startswith(name)]

    def end(self, number=signal.SIGTERM):
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait()

    def kill(self):
        """End it whatever it does, stopped or not."""
        self.process.kill()
        self.process.wait()


def wait_until(holds):
    while not holds():
        threading.Event().wait(0.1)
