"""``python -m api`` as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx


def wait_until(holds, seconds=120):
    """Wait for what another process does; far longer than it ever takes."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


class ApiProcess:
    """``python -m api``, and what it logged."""

    def __init__(self, log: Path, **variables: str) -> None:
        self.log = log
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")}
        environment = inherited | variables | {"HALLDETECT_API_PORT": str(self.port)}
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "api"], env=environment, stdout=output, stderr=output
            )

    def wait(self) -> None:
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"{self.url}/healthz", timeout=30).status_code == 200
        except httpx.TransportError:
            return False

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
