"""The API and a worker as processes: what they log of one audit, and what they tell Prometheus.

One pair of processes serves all tests here; each audit is told from the others by its id.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import psycopg
import pytest

from cli.stack.ports import free_port
from db.api_keys import create_key
from db.engine import make_engine, session_factory
from db.migrate import upgrade
from db.scopes import Scope
from queues.celery_app import make_app
from queues.names import Task

ROOT = Path(__file__).resolve().parents[2]
SECRET_SOURCE = "The pelican factory opened in 1911. It closed in 1950 after a fire."
SECRET_RESPONSE = "The pelican factory opened in 1911. Nobody was hurt."
# What a name in a query may be beside a metric of ours: those of any process, and of Prometheus.
_METRIC = re.compile(r"\b(halldetect_\w+|process_\w+)\b")


def wait_until(holds):
    while not holds():
        threading.Event().wait(0.1)


class Service:
    """The processes, their logs and their addresses."""

    def __init__(self, folder, database, redis_url):
        self.logs = {name: folder / f"{name}.log" for name in ("api", "worker")}
        self.ports = {name: free_port() for name in self.logs}
        self.url = f"http://127.0.0.1:{self.ports['api']}"
        self.redis_url = redis_url
        self._environment = {
            **{n: v for n, v in os.environ.items() if not n.startswith("HALLDETECT_")},
            "DATABASE_URL": database,
            "REDIS_URL": redis_url,
            "HALLDETECT_API_PORT": str(self.ports["api"]),
            "HALLDETECT_API_KEYS_REQUIRED": "true",
            "HALLDETECT_METRICS_PORT": str(self.ports["worker"]),
            "HALLDETECT_EXTRACTOR": "sentences",
            "HALLDETECT_THREADS": "1",
        }
        engine = make_engine(database)
        with session_factory(engine).begin() as session:
            self.key, secret = create_key(session, "tests", [Scope.ADMIN])
        engine.dispose()
        self.headers = {"Authorization": f"Bearer {secret}"}
        self.secret = secret
        worker = ["celery", "-A", "worker.app", "worker", "-Q", "extraction,nli,maintenance"]
        quiet = ["-n", "all@%h", "-l", "INFO", "--without-mingle", "--without-gossip"]
        self.processes = [
            self._start("api", ["api"]),
            self._start("worker", [*worker, *quiet]),
        ]

    def _start(self, name, command):
        with self.logs[name].open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_ready(self):
        def is_ready():
            assert all(process.poll() is None for process in self.processes)
            try:
                answer = httpx.get(f"{self.url}/readyz", timeout=60)
                return answer.status_code == 200 and answer.json()["warnings"] == []
            except httpx.TransportError:
                return False

        wait_until(is_ready)

    def get(self, path):
        return httpx.get(f"{self.url}{path}", headers=self.headers, timeout=60)

    def lines(self, name):
        text = self.logs[name].read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # the last line may be half written
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def wait_for_line(self, name, event, **fields):
        """Wait until something was logged, which may come after what it is about can be seen."""

        def is_logged():
            return any(
                line["event"] == event and fields.items() <= line.items()
                for line in self.lines(name)
            )

        wait_until(is_logged)

    def metrics(self, name):
        if name == "api":
            return self.get("/metrics").text
        answer = httpx.get(f"http://127.0.0.1:{self.ports['worker']}/metrics", timeout=60)
        assert answer.status_code == 200
        return answer.text

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def service(postgres, _valkey, tmp_path_factory):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE observed")
    database = f"{postgres.url.rpartition('/')[0]}/observed"
    upgrade(database)
    # A number of its own, in which nothing of other tests is left.
    redis_url = f"{_valkey.url.rpartition('/')[0]}/7"
    service = Service(tmp_path_factory.mktemp("observed"), database, redis_url)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.end()
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("DROP DATABASE observed WITH (FORCE)")


@pytest.fixture(scope="module")
def audited(service):
    """One audit from its submission to its end, under a request id of the client's."""
    record = {"custom_id": "c1", "source": SECRET_SOURCE, "response": SECRET_RESPONSE}
    answer = httpx.post(
        f"{service.url}/v1/audits",
        json=record,
        headers={**service.headers, "X-Request-ID": "trace-17"},
        timeout=60,
    )
    assert answer.status_code == 202
    assert answer.headers["X-Request-ID"] == "trace-17"
    number = int(answer.json()["id"])
    wait_until(lambda: service.get(f"/v1/audits/{number}").json()["status"] == "completed")
    service.wait_for_line("api", "sent a wake-up", audit_id=number)
    service.wait_for_line("api", "request", request_id="trace-17")
    service.wait_for_line("worker", "audit completed", audit_id=number)
    service.wait_for_line("worker", "run ended", stage="verification", audits=1)
    return number


def test_one_id_leads_through_all_logs_from_the_submission_to_the_end(service, audited):
    api = [line for line in service.lines("api") if line.get("audit_id") == audited]
    assert [line["event"] for line in api] == ["audit submitted", "sent a wake-up"]
    assert {line["request_id"] for line in api} == {"trace-17"}
    assert api[0]["api_key_id"] == service.key.id
    worker = [line for line in service.lines("worker") if line.get("audit_id") == audited]
    events = [line["event"] for line in worker]
    assert events[0] == "woken"
    assert worker[0]["task_id"] == api[1]["sent_task_id"]
    assert events.index("claims extracted") < events.index("audit completed")
    assert all(line["task_id"] for line in worker)
    passed_on = [line["sent_task_id"] for line in worker if line["event"] == "sent a wake-up"]
    assert worker[events.index("audit completed")]["task_id"] in passed_on
    (extracted,) = [line for line in worker if line["event"] == "claims extracted"]
    assert extracted["stage"] == "extraction"
    assert (extracted["batch_id"], extracted["claims"]) == (None, 2)


def test_the_request_itself_is_one_line_with_the_same_id(service, audited):
    (request,) = [
        line
        for line in service.lines("api")
        if line["event"] == "request" and line["request_id"] == "trace-17"
    ]
    assert (request["method"], request["path"], request["status"]) == ("POST", "/v1/audits", 202)
    assert request["api_key_id"] == service.key.id


def test_an_audit_of_a_batch_is_told_with_its_batch(service):
    lines = [{"custom_id": f"b{n}", "source": "It rained.", "response": "It rained."} for n in "12"]
    answer = httpx.post(
        f"{service.url}/v1/batches",
        content="".join(json.dumps(line) + "\n" for line in lines),
        headers={**service.headers, "Content-Type": "application/jsonl"},
        timeout=60,
    )
    batch = int(answer.json()["id"])
    wait_until(lambda: service.get(f"/v1/batches/{batch}").json()["waiting"] == 0)
    service.wait_for_line("api", "batch submitted", batch_id=batch)
    (submitted,) = [line for line in service.lines("api") if line["event"] == "batch submitted"]
    assert (submitted["batch_id"], submitted["audits"]) == (batch, 2)
    assert submitted["request_id"] == answer.headers["X-Request-ID"]

    def completed():
        return {
            line["audit_id"]
            for line in service.lines("worker")
            if line["event"] == "audit completed" and line["batch_id"] == batch
        }

    wait_until(lambda: len(completed()) == 2)


def test_no_log_holds_a_text_or_a_secret(service, audited):
    for name in service.logs:
        text = service.logs[name].read_text(encoding="utf-8")
        assert "pelican" not in text
        assert service.secret not in text
        assert service.redis_url not in text


@pytest.mark.parametrize("name", ["api", "worker"])
def test_promtool_finds_nothing_wrong_with_the_figures(service, audited, promtool, name):
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=service.metrics(name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_the_figures_hold_no_text_and_no_id(service, audited):
    for name in service.logs:
        text = service.metrics(name)
        assert not any(word in text for word in ("pelican", "trace-17", "c1", service.secret))


def names_in(text):
    """Return the names of all samples in Prometheus's text format."""
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line[:1] not in ("#", "")}


@pytest.fixture(scope="module")
def told(service, audited):
    """The names of all samples that either process tells, by process, once all has happened."""
    make_app(service.redis_url, "test").send_task(Task.SWEEP.value, queue="maintenance")
    wait_until(lambda: "\nhalldetect_sweeps_total 0.0\n" not in service.metrics("worker"))
    return {name: names_in(service.metrics(name)) for name in service.logs}


def test_dashboard_and_alerts_ask_for_nothing_that_is_not_told(told):
    dashboard = json.loads((ROOT / "monitoring" / "dashboard.json").read_text())
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    texts = {
        "dashboard.json": " ".join(queries),
        "alerts.yml": re.sub(r"(?m)^ *#.*$", "", (ROOT / "monitoring/alerts.yml").read_text()),
    }
    for file, text in texts.items():
        asked = set(_METRIC.findall(text))
        assert len(asked) > 5
        assert asked <= told["api"] | told["worker"], file


def test_the_documentation_lists_what_is_told_and_nothing_else(told):
    text = (ROOT / "docs" / "operations.md").read_text()
    section = text[text.index("\n## Metrics\n") :]
    section = section[: section.index("\n## ", 1)]
    table = "\n".join(line for line in section.splitlines() if line.startswith("| `"))
    listed = set(re.findall(r"`(halldetect_\w+)`", table))
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in told["api"] | told["worker"]}
    ours = {name for name in families if name.startswith("halldetect_")}
    assert listed == ours


def test_both_processes_tell_what_they_did(service, told):
    api, worker = service.metrics("api"), service.metrics("worker")
    assert (
        'halldetect_http_requests_total{method="POST",route="/v1/audits",status="202"} 1.0' in api
    )
    assert 'halldetect_workers{queue="nli",state="ready"} 1.0' in api
    assert re.search(r'finished_total{outcome="completed",stage="verification"} [1-9]', worker)
    assert re.search(r'halldetect_wake_ups_sent_total{task="halldetect.extract"} [1-9]', api)
    assert re.search(r"halldetect_pairs_total [1-9]", worker)
