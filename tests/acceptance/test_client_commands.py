"""The demo, and the commands against the service that it leaves running."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from cli.demo_pairs import PAIRS_FILE, load_pairs
from cli.stack.run_file import read_running_stack
from db.trails import StoredAudit
from halldetect.trail import AuditResult

PAIRS = load_pairs()
SOURCE = "The council approved the transit plan on Tuesday. Work begins in March."
TRUE = "The council approved the transit plan on Tuesday."
FALSE = "There will be no work in March."


class Demo:
    """A `halldetect demo --keep` that has done its work and goes on running."""

    def __init__(self, command, folder):
        self.home = folder / "user-demo"
        self.output, self.errors = folder / "out.txt", folder / "err.txt"
        self.environment = {"HALLDETECT_HOME": str(self.home)}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HALLDETECT_")}
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [command, "demo", "--keep"],
                stdout=output,
                stderr=errors,
                env={**inherited, "HALLDETECT_HOME": str(folder / "user")},
            )
        while "the service goes on until Ctrl-C" not in self.errors.read_text():
            assert self.process.poll() is None, self.errors.read_text()
            time.sleep(0.2)

    @property
    def printed(self):
        return self.output.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    demo = Demo(Path(sys.executable).with_name("halldetect"), tmp_path_factory.mktemp("demo"))
    yield demo
    if demo.process.poll() is None:
        demo.process.send_signal(signal.SIGINT)
        demo.process.wait()


@pytest.fixture
def client(halldetect, demo, tmp_path):
    """Runs a command against the demo's service, in a folder of its own."""
    return lambda *arguments, **options: halldetect(
        *arguments, cwd=tmp_path, **demo.environment, **options
    )


@pytest.fixture
def write_lines(tmp_path):
    def write(*responses):
        lines = [json.dumps({"source": SOURCE, "response": text}) for text in responses]
        (tmp_path / "in.jsonl").write_text("".join(f"{line}\n" for line in lines))

    return write


def results_of(done):
    assert done.returncode == 0, done.stderr
    return [StoredAudit.model_validate_json(line) for line in done.stdout.splitlines()]


def test_the_demo_finds_most_of_what_was_planted_and_owns_up_to_the_rest(demo):
    rows = [line for line in demo.printed.splitlines() if line.startswith("│")]
    answers = Counter(row.rpartition("│")[0].rpartition("│")[2].strip() for row in rows)
    assert answers["yes"] + answers["NO"] == len(PAIRS)
    assert answers["yes"] >= 0.75 * len(PAIRS)
    assert f"{answers['yes']} of {len(PAIRS)} as planted" in demo.printed
    assert "ferry: one trail in full" in demo.printed
    assert "5 claims: 4 supported, 1 contradicted, 0 unsupported" in demo.printed


def test_the_demo_shows_where_everything_is(demo):
    running = read_running_stack(demo.home)
    assert running.is_ready
    for address in (f"{running.api_url}/docs", running.flower_url):
        assert address in demo.printed
    assert not (demo.home.parent / "user").exists()


def test_the_query_of_the_demo_runs_as_it_is_printed(demo):
    lines = demo.printed.splitlines()
    line = lines[lines.index("or, without psql:") + 1]
    done = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    assert len(rows) == 10
    assert all("unsupported" in row or "contradicted" in row for row in rows)


def test_results_are_those_of_audits_in_one_process(client, halldetect, tmp_path):
    stored = results_of(client("results", 1, "--matrix"))
    assert [result.custom_id for result in stored] == [pair.name for pair in PAIRS]
    first = PAIRS_FILE.read_bytes().splitlines(keepends=True)[:5]
    done = halldetect("audit", "--jsonl", "-", "--out", "-", cwd=tmp_path, stdin=b"".join(first))
    alone = [json.loads(line) for line in done.stdout.splitlines()]
    for one, line in zip(stored[:5], alone, strict=True):
        own = ("line", "line_sha256", "settings_sha256")
        other = AuditResult.model_validate({k: v for k, v in line.items() if k not in own})
        assert one.fedscore == pytest.approx(other.fedscore, abs=1e-5)
        assert (one.label, one.outcome) == (other.label, other.outcome)
        assert [c.text for c in one.claims] == [c.text for c in other.claims]
        assert [c.verdict for c in one.claims] == [c.verdict for c in other.claims]
        for row, expected in zip(one.matrix.entailment, other.matrix.entailment, strict=True):
            assert row == pytest.approx(expected, abs=1e-5)


def test_a_file_is_submitted_followed_and_summed_up(client, write_lines):
    write_lines(TRUE, FALSE, "Thanks!")
    done = client("submit", "in.jsonl", "--wait", "--fail-on", "hallucinated")
    assert done.returncode == 1, done.stderr
    output = done.stdout.decode()
    assert ": completed" in output
    assert "most hallucinated" in output
    assert "claims contradicted" in output
    assert b"3 audits accepted" in done.stderr


def test_nothing_flagged_is_no_failure(client, write_lines):
    write_lines(TRUE)
    done = client("submit", "in.jsonl", "--wait", "--fail-on", "hallucinated", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["faithful"] == 1


def test_a_reader_that_goes_away_ends_the_results_quietly(halldetect_piped, demo, monkeypatch):
    monkeypatch.setenv("HALLDETECT_HOME", str(demo.home))
    code, errors = halldetect_piped("results", "1", "--matrix", cwd=demo.home)
    assert code == 141
    assert errors == b""


def test_an_interrupt_ends_the_waiting_and_not_the_batch(client, demo, command, tmp_path):
    # So many that none of this takes as long as they do.
    copies = 100
    lines = PAIRS_FILE.read_bytes() * copies
    (tmp_path / "in.jsonl").write_bytes(lines.replace(b'"custom_id"', b'"question"'))
    process = subprocess.Popen(
        [command, "submit", "in.jsonl", "--wait"],
        cwd=tmp_path,
        env={**os.environ, **demo.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    batch = process.stderr.readline().decode().split()[2].rstrip(":")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert output == b""
    assert f"batch {batch} goes on, and `halldetect status {batch} --wait`" in errors.decode()
    state = json.loads(client("status", batch, "--json").stdout)
    assert state["status"] == "in_progress"
    cancelled = client("cancel", batch)
    assert cancelled.returncode == 0
    assert b"audits cancelled" in cancelled.stdout
    done = client("status", batch, "--wait")
    assert done.returncode == 2
    assert b"audits cancelled; `halldetect results" in done.stderr
    results = results_of(client("results", batch))
    assert len(results) == copies * len(PAIRS)
    assert {result.status.value for result in results} <= {"completed", "cancelled"}


def test_the_demo_ends_with_all_it_started(demo, client, tmp_path):
    running = read_running_stack(demo.home)
    processes = [psutil.Process(child.pid) for child in running.children]
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait() == 0
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)
    gone = client("status", 1)
    assert gone.returncode == 4
    assert b"no service is running: start one with `halldetect up`" in gone.stderr
