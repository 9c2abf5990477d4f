"""Workers that are given what they must not run: pickled messages, and a model file with a program.

Each is a real worker process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis
from api_process import wait_until

from db.line import Stage
from halldetect.model_loading import extractor_path
from halldetect.settings import Settings
from queues.celery_app import make_app
from queues.names import Queue, Task
from queues.wake_ups import WakeUps

ROOT = Path(__file__).resolve().parents[3]


FILES = ("--source", "S.txt", "--response", "R.txt")


class Program:
    """Writes a file when it is unpickled."""

    def __init__(self, file):
        self._file = str(file)

    def __reduce__(self):
        return os.system, (f"touch '{self._file}'",)


@pytest.fixture
def start_worker(database, redis_url, tmp_path):
    """Return a function: a queue and settings to a worker process and the file of its log."""
    started = []

    def start(queue, **settings):
        log = tmp_path / f"{queue}.log"
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")}
        chosen = {f"HALLDETECT_{name.upper()}": str(value) for name, value in settings.items()}
        servers = {"DATABASE_URL": database, "REDIS_URL": redis_url, "HALLDETECT_THREADS": "1"}
        command = ["worker", "-Q", queue, "-n", f"{queue}@%h", "-l", "INFO", "--without-mingle"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "worker.app", *command],
                cwd=ROOT,
                env=inherited | servers | chosen,
                stdout=output,
                stderr=output,
            )
        started.append(process)
        return process, log

    yield start
    for process in started:
        process.kill()
        process.wait()


def states(database):
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT state, error FROM halldetect.workers").fetchall()


def test_messages_that_are_not_ours_run_nothing_and_the_worker_lives(
    start_worker, database, redis_url, tmp_path
):
    ran = tmp_path / "ran"
    app = make_app(redis_url, "stranger")
    for serializer in ("pickle", "yaml"):
        app.send_task(
            Task.EXTRACT.value,
            kwargs={"reason": Program(ran) if serializer == "pickle" else "submitted"},
            queue=Queue.EXTRACTION.value,
            serializer=serializer,
        )
    # Ours by their kind, and nothing that a task takes.
    app.send_task("os.system", args=["true"], queue=Queue.EXTRACTION.value)
    app.send_task(Task.EXTRACT.value, kwargs={"path": "/etc"}, queue=Queue.EXTRACTION.value)
    with redis.Redis.from_url(redis_url) as broker:
        messages = [json.loads(text) for text in broker.lrange(Queue.EXTRACTION.value, 0, -1)]
        assert "application/x-python-serialize" in {one["content-type"] for one in messages}
    process, log = start_worker("extraction", extractor="sentences")
    wait_until(lambda: "ready" in [state for state, _ in states(database)])
    WakeUps(make_app(redis_url, "test")).send(Stage.EXTRACTION, reason="submitted")
    wait_until(lambda: "run ended" in log.read_text())
    wait_until(lambda: log.read_text().count("ContentDisallowed") >= 2)
    assert not ran.exists()
    assert process.poll() is None
    with redis.Redis.from_url(redis_url) as broker:
        wait_until(lambda: broker.llen(Queue.EXTRACTION.value) == 0)
        wait_until(lambda: broker.hlen("unacked") == 0)


def test_the_program_that_a_pickled_message_holds_would_run(tmp_path):
    import pickle

    pickle.loads(pickle.dumps(Program(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


def with_template(raw, template):
    """Return a GGUF file's bytes with another chat template of the same length."""
    key = b"tokenizer.chat_template"
    at = raw.index(key) + len(key) + 4
    length = int.from_bytes(raw[at : at + 8], "little")
    return raw[: at + 8] + template.ljust(length) + raw[at + 8 + length :]


def test_a_worker_does_not_run_the_chat_template_of_a_model_file(start_worker, database, tmp_path):
    ran, hostile = tmp_path / "ran", tmp_path / "hostile.gguf"
    # It is rendered, in a sandbox: without one this finds a way to the system.
    program = f"cycler.__init__.__globals__.os.popen('touch {ran}').read()"
    template = "{{ " + program + " }}"
    raw = extractor_path(Settings(extractor_model=None)).read_bytes()
    hostile.write_bytes(with_template(raw, template.encode()))
    try:
        process, _ = start_worker("extraction", extractor="llama", extractor_model=hostile)
        wait_until(lambda: "failed" in [state for state, _ in states(database)], seconds=300)
        [(_, error)] = states(database)
        assert error.startswith(f"{hostile}: the chat template cannot be rendered")
        assert process.poll() is None
        done = subprocess.run(
            [sys.executable, "-c", "from cli.main import main; main()", "audit", *FILES],
            cwd=_with_texts(tmp_path),
            env={**os.environ, "PYTHONPATH": str(ROOT), "HALLDETECT_EXTRACTOR_MODEL": str(hostile)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        hostile.unlink()  # a hundred megabytes
    assert done.returncode != 0
    assert str(hostile) in done.stderr
    assert "Traceback" not in done.stderr
    assert not ran.exists()


def _with_texts(folder):
    for name in ("S.txt", "R.txt"):
        (folder / name).write_text("The mill closed.")
    return folder
