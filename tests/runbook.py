"""The commands of docs/runbook.md, run by tests as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNBOOK = ROOT / "docs" / "runbook.md"


def commands(heading, *, containing=""):
    """Return the blocks of commands below a heading, or the one that contains a word."""
    sections = re.split(r"(?m)^#+ (.+)$", RUNBOOK.read_text(encoding="utf-8"))
    body = dict(zip(sections[1::2], sections[2::2], strict=True))[heading]
    blocks = re.findall(r"(?m)(?:^    .+\n)+", body)
    if not containing:
        return "".join(blocks)
    (chosen,) = [block for block in blocks if containing in block]
    return chosen


def run(script, *, folder, **environment):
    """Run commands in a shell that finds the program as an operator's does; return its output."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HALLDETECT_", "PG", "DATABASE_URL", "REDIS_URL"))
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", os.defpath)))
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=folder,
        env={**inherited, "PATH": path, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def addresses():
    """Return the command that tells a shell where the servers are."""
    return commands("Where to run them", containing="halldetect env")
