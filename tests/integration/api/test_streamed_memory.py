"""The API's memory stays flat while large batches go in and their results go out."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from api_process import ApiProcess

LINES = 8_000
RESPONSE = " ".join(f"The mill made {n} sacks of flour that year." for n in range(110))
# What buffers and caches may take; the batch is more than ten times as large.
ALLOWED = 3 * 2**20


@pytest.fixture
def api(database, redis_url, tmp_path):
    """The API as a process of its own: (address, process id)."""
    process = ApiProcess(tmp_path, database, redis_url)
    try:
        process.wait_until_it_answers()
        yield process.url, process.process.pid
    finally:
        process.stop()


def upload(address, file):
    request = urllib.request.Request(
        f"{address}/v1/batches",
        data=file.open("rb"),
        headers={"Content-Type": "application/jsonl", "Content-Length": str(file.stat().st_size)},
    )
    with request.data, urllib.request.urlopen(request) as answer:
        return json.load(answer)["id"]


def read(address, batch):
    """Read all results; return their lines and bytes."""
    lines = size = 0
    with urllib.request.urlopen(f"{address}/v1/batches/{batch}/results") as answer:
        while content := answer.read(2**16):
            lines += content.count(b"\n")
            size += len(content)
    return lines, size


def write(file, lines):
    with file.open("w") as stream:
        for n in range(lines):
            record = {"custom_id": f"r{n}", "source": f"Mill {n}.", "response": f"{RESPONSE} {n}"}
            stream.write(json.dumps(record) + "\n")
    return file


def peak(pid):
    fields = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in fields if line.startswith("VmHWM"))) * 1024


def test_a_large_batch_goes_in_and_its_results_go_out_in_flat_memory(api, tmp_path):
    address, pid = api
    # As much as is ever held at once: a spool's buffer, a page of results.
    read(address, upload(address, write(tmp_path / "small.jsonl", 1000)))
    before = peak(pid)
    large = write(tmp_path / "large.jsonl", LINES)
    assert large.stat().st_size > 10 * ALLOWED
    batch = upload(address, large)
    assert peak(pid) - before < ALLOWED
    lines, size = read(address, batch)
    assert lines == LINES
    assert size > 10 * ALLOWED
    assert peak(pid) - before < ALLOWED
