"""The app as a program sees it that only imports it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ADDRESSES = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}
REPORT = """
import json, sys
import worker.app
app = worker.app.app
print(json.dumps({
    "modules": sorted(sys.modules),
    "tasks": sorted(name for name in app.tasks if not name.startswith("celery.")),
    "beat": {entry["task"]: entry["options"] if "options" in entry else {}
             for entry in app.conf.beat_schedule.values()},
    "pool": [app.conf.worker_pool, app.conf.worker_concurrency],
}))
"""


def run(*command, **environment):
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HALLDETECT_") and name not in ADDRESSES
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def report():
    finished = run("-c", REPORT, **ADDRESSES, HALLDETECT_SWEEP_SECONDS="7")
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_importing_the_app_imports_no_library_of_a_model(report):
    loaded = {name.partition(".")[0] for name in report["modules"]}
    assert not loaded & {"onnxruntime", "llama_cpp", "torch", "transformers", "tokenizers"}


def test_every_wake_up_has_a_task(report):
    assert {
        "halldetect.create_partitions",
        "halldetect.deliver",
        "halldetect.extract",
        "halldetect.sweep",
        "halldetect.verify",
    } <= set(report["tasks"])


def test_beat_sweeps_and_makes_partitions(report):
    # A message that expires does so by the clock of the machine that takes it.
    assert report["beat"] == {"halldetect.sweep": {}, "halldetect.create_partitions": {}}


def test_one_thread_is_the_default(report):
    assert report["pool"] == ["threads", 1]


@pytest.mark.parametrize("missing", sorted(ADDRESSES))
def test_a_missing_address_is_named(missing):
    given = {name: value for name, value in ADDRESSES.items() if name != missing}
    finished = run("-m", "celery", "-A", "worker.app", "worker", **given)
    assert finished.returncode != 0
    assert f"{missing} is not set" in finished.stdout + finished.stderr


def test_a_pool_that_forks_is_refused():
    finished = run("-m", "celery", "-A", "worker.app", "worker", "--pool=solo", **ADDRESSES)
    assert finished.returncode != 0
    assert "--pool=threads" in finished.stderr
