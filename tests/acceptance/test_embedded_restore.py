"""The runbook on the embedded stack: dumped while it works, drained by Flower, and made anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runbook
from test_stack import Up, get, part

AUDITS = 30
SOURCE = " ".join(f"The mill made {n} sacks of flour in week {n}." for n in range(3))


@pytest.fixture
def start(tmp_path):
    """Starts stacks, and stops those that still run."""
    ups = []

    def run(name):
        ups.append(Up(tmp_path / name))
        return ups[-1]

    yield run
    for up in ups:
        if up.process.poll() is None:
            up.stop()


@pytest.fixture
def operate(tmp_path):
    """Return a function that runs commands of the runbook against a stack."""

    def operate(up, *scripts):
        everything = "\n".join([runbook.addresses(), *scripts])
        return runbook.run(everything, folder=tmp_path, HALLDETECT_HOME=str(up.home))

    return operate


def submit(stack, folder):
    lines = (
        {
            "custom_id": f"r{n}",
            "source": SOURCE,
            "response": f"The mill made {n} sacks of flour that week. It closed in {1900 + n}.",
        }
        for n in range(AUDITS)
    )
    file = folder / "batch.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    submitted = runbook.run(
        f"halldetect submit {file} --json", folder=folder, HALLDETECT_API_URL=stack.api_url
    )
    return json.loads(submitted)["id"]


def wait_for(holds):
    while not (value := holds()):
        time.sleep(0.1)
    return value


def flower_sees(stack, node):
    """Tell whether Flower knows a worker: it asks them, and waits a second for answers."""
    user, _, place = stack.flower_url.removeprefix("http://").rpartition("@")
    known = get(f"http://{place}/api/workers?refresh=1", user)
    return any(name.startswith(node) for name in known)


def test_a_stack_is_dumped_at_work_and_another_one_goes_on_with_it(start, operate, tmp_path):
    up = start("first")
    stack = up.wait_until(lambda stack: stack.is_ready)
    batch = submit(stack, tmp_path)
    state = f"{stack.api_url}/v1/batches/{batch}"
    wait_for(lambda: get(state)["completed"] > 0)
    operate(up, runbook.commands("Back up"))

    added = subprocess.Popen(
        ["bash", "-c", f"{runbook.addresses()}\nexec {runbook.commands('Add a worker').strip()}"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": str(runbook.ROOT),
            "HALLDETECT_HOME": str(up.home),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: "nli-2@" in operate(up, "halldetect status"))
        wait_for(lambda: flower_sees(stack, "nli-2@"))
        operate(up, runbook.commands("Drain a worker", containing="curl"))
        assert added.wait() == 0
    finally:
        added.kill()
        added.wait()
    assert "nli-2@" not in operate(up, "halldetect status")
    before = wait_for(lambda: get(state)["waiting"] == 0 and get(state))
    up.stop()

    up = start("second")
    stack = up.wait_until(lambda stack: part(stack, "nli").state == "running")
    operate(up, runbook.commands("Restore into an embedded stack"))
    state = f"{stack.api_url}/v1/batches/{batch}"
    after = wait_for(lambda: get(state)["waiting"] == 0 and get(state))
    counts = ("total", "completed", "hallucinated", "supported", "contradicted", "unsupported")
    assert [after[name] for name in counts] == [before[name] for name in counts]
    assert after["completed"] == AUDITS
    up.wait_until(lambda stack: stack.is_ready)
    wait_for(lambda: "all is well" in operate(up, "halldetect doctor || true"))
