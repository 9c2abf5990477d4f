"""No secret and no text under audit is where nobody looks for one: logs, messages, error bodies.

Real processes over servers of their own, whose passwords are marked words, as are all texts that go
in. Errors of every kind are provoked; then everything that was written is searched for the words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg
import pytest
import redis
from api_process import ApiProcess, wait_until

from cli.stack.passwords import write_private
from cli.stack.ports import free_port
from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from db.api_keys import create_key
from db.engine import make_engine, session_factory
from db.line import Stage
from db.migrate import upgrade
from db.scopes import Scope
from queues.celery_app import make_app
from queues.wake_ups import WakeUps

ROOT = Path(__file__).resolve().parents[3]
# Words that nobody else would write: one a field, and one for each way to fail.
SOURCE, RESPONSE, CONTEXT, CUSTOM_ID, METADATA = FIELDS = (
    *("quaggamark", "okapimark", "numbatmark", "tapirmark", "kakapomark"),
)
UNSOUND, REFUSED, BROKEN = FAULTS = ("axolotlmark", "servalmark", "dugongmark")
TEXTS = FIELDS + FAULTS
PASSWORDS = ("postgrespasswordmark", "valkeypasswordmark", "flowerpasswordmark")
STRANGERS_KEY = "hd_strangerskeymark"
JSONL = {"Content-Type": "application/jsonl"}


def record(response, number=0):
    return {
        "custom_id": f"{CUSTOM_ID} {number}",
        "source": f"The {SOURCE} opened in 1900. It closed in 1950.",
        "response": f"The {SOURCE} opened in 1900. The {response} never slept.",
        "context": f"What of the {CONTEXT}?",
        "metadata": {METADATA: [METADATA]},
    }


class Stack:
    """Servers and processes, and everything that they were heard to say."""

    def __init__(self, folder):
        self.folder = folder
        self.error_bodies = []
        self.messages = b""
        self.processes = {}
        for name, password in (("postgres", PASSWORDS[0]), ("valkey", PASSWORDS[1])):
            (folder / name).mkdir()
            write_private(folder / name / "password", password)
        self.postgres = PostgresServer(folder / "postgres", durable=False)
        self.valkey = ValkeyServer(folder / "valkey")
        self.postgres.start()
        self.valkey.start()
        upgrade(self.postgres.url)
        engine = make_engine(self.postgres.url)
        with session_factory(engine).begin() as session:
            self.secret = create_key(session, "a", [Scope.ADMIN])[1]
            self.reader = create_key(session, "b", [Scope.READ])[1]
        engine.dispose()
        self.variables = {
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            "HALLDETECT_API_KEYS_REQUIRED": "true",
            "HALLDETECT_EXTRACTOR": "sentences",
            "HALLDETECT_THREADS": "1",
            "HALLDETECT_MAX_ATTEMPTS": "1",
            "FLOWER_BASIC_AUTH": f"user:{PASSWORDS[2]}",
        }
        self.api = ApiProcess(folder, self.postgres.url, self.valkey.url, api_keys_required=True)
        self.api.wait_until_it_answers()
        self.client = httpx.Client(base_url=self.api.url, timeout=60)

    def start(self, name, *command):
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "worker.app", *command],
                cwd=ROOT,
                env=inherited | self.variables,
                stdout=log,
                stderr=log,
            )

    def start_worker(self, queue):
        self.start(queue, "worker", "-Q", queue, "-n", f"{queue}@%h", "-l", "INFO")

    def send(self, method, path, *, key=None, expected, **request):
        """Send a request; keep the body of the answer if it is an error's."""
        headers = {"Authorization": f"Bearer {key or self.secret}", **request.pop("headers", {})}
        answer = self.client.request(method, path, headers=headers, **request)
        assert answer.status_code == expected, (method, path, answer.text)
        if answer.is_error:
            self.error_bodies.append((path, f"{answer.headers}\n{answer.text}"))
        return answer

    def execute(self, statement):
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def forbid(self, table, column, word):
        """Let Postgres refuse rows with a word, and quote them while it does."""
        self.execute(
            f"ALTER TABLE halldetect.{table} ADD CHECK ({column} NOT LIKE '%{word}%') NOT VALID"
        )

    def keep_messages(self):
        """Note everything that is in Redis at the moment."""
        with redis.Redis.from_url(self.valkey.url) as client:
            for key in client.scan_iter():
                value = {
                    b"list": lambda key: client.lrange(key, 0, -1),
                    b"hash": client.hgetall,
                    b"set": client.smembers,
                    b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
                }.get(client.type(key), client.get)(key)
                self.messages += key + repr(value).encode()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def stop(self):
        self.client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.api.kill()
        self.postgres.stop()
        self.valkey.stop()


@pytest.fixture
def stack(tmp_path_factory):
    stack = Stack(tmp_path_factory.mktemp("stack"))
    yield stack
    stack.stop()


def test_no_secret_and_no_text_is_where_it_does_not_belong(stack):
    send_what_is_refused(stack)
    send_what_postgres_refuses(stack)
    send_what_is_audited(stack)
    fail_in_the_middle_of_tasks(stack)
    flower = ask_flower(stack)
    lose_the_servers(stack)
    places = {path.name: path.read_text("utf-8", "replace") for path in stack.folder.glob("*.log")}
    for server in ("postgres", "valkey"):
        places[server] = (stack.folder / server / f"{server}.log").read_text("utf-8", "replace")
    assert {
        stack.api.log.name,
        "extraction.log",
        "nli.log",
        "maintenance.log",
        "flower.log",
    } <= set(places)
    places["Redis"] = stack.messages.decode("utf-8", "replace")
    places["Flower"] = flower
    places["workers"] = str(stack.execute("SELECT * FROM halldetect.workers"))
    secrets = (stack.secret[3:], stack.reader[3:], STRANGERS_KEY, *PASSWORDS)
    found = [
        (place, word)
        for place, text in places.items()
        for word in (*TEXTS, *secrets)
        if word.lower() in text.lower()
    ]
    # Whoever sent a custom_id or named a field may be told which one it was.
    found += [
        (path, word)
        for path, text in stack.error_bodies
        for word in {*TEXTS, *secrets} - {CUSTOM_ID}
        if word.lower() in text.lower()
    ]
    assert found == []
    # Nothing was missed because nothing was said.
    assert "halldetect.extract" in places["Redis"]
    assert "halldetect.verify" in places["Flower"]
    assert places["postgres"].count("check constraint") >= 4
    assert "CheckViolation" in places[stack.api.log.name]
    for worker in ("extraction", "nli"):
        assert "CheckViolation" in places[f"{worker}.log"]
        assert "a task failed" in places[f"{worker}.log"]
    assert len(stack.error_bodies) > 15


def send_what_is_refused(stack):
    sound = record(RESPONSE)
    for change in ({"source": 7}, {"priority": UNSOUND}, {"metadata": UNSOUND}, {"policy": 1}):
        stack.send("POST", "/v1/audits", json=sound | change, expected=422)
    for body in (
        f'{{"source": "{UNSOUND}"',
        f'{{"source": "{UNSOUND}\\u0000", "response": ""}}',
        f'{{"source": "{UNSOUND} \\ud800", "response": ""}}',
        f'["{UNSOUND}"]',
        UNSOUND,
        f'{{"source": "{UNSOUND}", "response": "{UNSOUND}", "response": "{UNSOUND}"}}',
    ):
        header = {"Content-Type": "application/json"}
        stack.send("POST", "/v1/audits", content=body, headers=header, expected=422)
        stack.send("POST", "/v1/batches", content=f"{body}\n{body}", headers=JSONL, expected=422)
    twice = json.dumps(sound) + "\n" + json.dumps(sound)
    stack.send("POST", "/v1/batches", content=twice, headers=JSONL, expected=422)
    stack.send("POST", "/v1/audits", json=sound, key=stack.reader, expected=403)
    stack.send("POST", "/v1/audits", json=sound, key=STRANGERS_KEY, expected=401)
    stack.send("GET", "/v1/audits", params={"submitted_from": UNSOUND}, expected=422)
    stack.send("GET", "/v1/audits", params={"cursor": UNSOUND}, expected=400)
    review = {"reviewer": f"{UNSOUND}\u200b", "verdict": "supported", "note": UNSOUND}
    stack.send("POST", "/v1/claims/1/reviews", json=review, expected=422)


def send_what_postgres_refuses(stack):
    """Errors that the API did not foresee, and whose messages quote a row."""
    stack.forbid("audits", "response", REFUSED)
    refused = record(REFUSED)
    stack.send("POST", "/v1/audits", json=refused, expected=500)
    stack.send("POST", "/v1/batches", content=json.dumps(refused), headers=JSONL, expected=500)


def send_what_is_audited(stack):
    stack.forbid("claims", "text", UNSOUND)
    responses = (RESPONSE, UNSOUND, BROKEN)
    lines = [json.dumps(record(response, n)) for n, response in enumerate(responses)]
    key = {"Idempotency-Key": "once"}
    batch = "\n".join(lines)
    answer = stack.send("POST", "/v1/batches", content=batch, headers=JSONL | key, expected=202)
    other = f"{lines[0]}\n"
    stack.send("POST", "/v1/batches", content=other, headers=JSONL | key, expected=422)
    stack.send("POST", "/v1/audits", json=record(RESPONSE, 9), expected=202)
    stack.keep_messages()
    # A completed audit with this response would be written, and refused.
    stack.execute(
        "ALTER TABLE halldetect.audits ADD CHECK "
        f"(status <> 'completed' OR response NOT LIKE '%{BROKEN}%') NOT VALID"
    )
    stack.start("flower", "flower", "--address=127.0.0.1", f"--port={_flower_port(stack)}")
    for queue in ("extraction", "nli", "maintenance"):
        stack.start_worker(queue)
    batch = f"/v1/batches/{answer.json()['id']}"
    wait_until(lambda: stack.send("GET", batch, expected=200).json()["waiting"] == 0)
    counts = stack.send("GET", batch, expected=200).json()
    assert (counts["completed"], counts["failed"]) == (1, 2)
    stack.keep_messages()


def _flower_port(stack):
    if not hasattr(stack, "flower_port"):
        stack.flower_port = free_port()
    return stack.flower_port


def fail_in_the_middle_of_tasks(stack):
    """Errors in a task itself: a row with texts that Postgres refuses when it is claimed."""
    stack.execute(
        "ALTER TABLE halldetect.audits ADD CONSTRAINT unclaimed CHECK "
        f"(lease_owner IS NULL OR response !~ '{UNSOUND}|{BROKEN}') NOT VALID"
    )
    for queue, stage in (("extraction", Stage.EXTRACTION), ("nli", Stage.VERIFICATION)):
        _make_wait(stack, stage)
        wait_until(lambda queue=queue: "a task failed" in stack.log(queue))
    stack.execute("ALTER TABLE halldetect.audits DROP CONSTRAINT unclaimed")


def _make_wait(stack, stage):
    """Put an audit into the line of a stage, and wake a worker."""
    status, word = ("queued", UNSOUND) if stage is Stage.EXTRACTION else ("extracted", BROKEN)
    stack.execute(
        f"UPDATE halldetect.audits SET status = '{status}', error = NULL, finished_at = NULL "
        f"WHERE status = 'failed' AND response LIKE '%{word}%'"
    )
    WakeUps(make_app(stack.valkey.url, "test")).send(stage, reason="submitted")


def ask_flower(stack):
    """Return all that Flower tells; strangers get nothing and stop nobody."""
    place = f"http://127.0.0.1:{stack.flower_port}"
    told = ""
    with httpx.Client(base_url=place, timeout=60) as flower:

        def answers():
            try:
                return flower.get("/healthcheck").status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers)
        for path in ("/api/workers", "/api/tasks", "/workers", "/"):
            assert flower.get(path).status_code == 401
        [node] = [name for name in _nodes(flower) if name.startswith("extraction@")]
        assert flower.post(f"/api/worker/shutdown/{node}").status_code == 401
        wait_until(lambda: "halldetect.verify" in _asked(flower, "/api/tasks"))
        for path in ("/api/workers", "/api/tasks", "/workers", "/tasks", "/broker"):
            told += _asked(flower, path)
        for task in json.loads(_asked(flower, "/api/tasks")):
            told += _asked(flower, f"/api/task/info/{task}") + _asked(flower, f"/task/{task}")
    assert stack.processes["extraction"].poll() is None
    return told


def _nodes(flower):
    found = {}

    def found_some():
        found.update(json.loads(_asked(flower, "/api/workers?refresh=1")))
        return any(name.startswith("extraction@") for name in found)

    wait_until(found_some)
    return found


def _asked(flower, path):
    return flower.get(path, auth=("user", PASSWORDS[2])).text


def lose_the_servers(stack):
    stack.valkey.stop()
    stack.send("POST", "/v1/audits", json=record(RESPONSE, 10), expected=202)
    stack.send("GET", "/readyz", expected=503)
    stack.postgres.stop()
    for method, path, request in (
        ("GET", "/readyz", {}),
        ("GET", "/v1/audits/1", {}),
        ("POST", "/v1/audits", {"json": record(RESPONSE, 11)}),
        ("POST", "/v1/batches", {"content": json.dumps(record(RESPONSE)), "headers": JSONL}),
    ):
        stack.send(method, path, expected=503, **request)
    for worker in ("extraction", "nli"):
        wait_until(lambda worker=worker: "connection" in stack.log(worker).lower())
    stack.postgres.start()
    stack.valkey.start()
