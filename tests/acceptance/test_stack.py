"""`halldetect up` from the outside: one command, and the service is there."""

import base64
import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import flower.urls
import psutil
import pytest

from cli.stack.run_file import read_running_stack

COMMAND = Path(sys.executable).with_name("halldetect")
PARTS = {"postgres", "valkey", "api", "extraction", "nli", "maintenance", "beat", "flower"}
RECORD = {
    "custom_id": "plan",
    "source": "The council approved the transit plan on Tuesday. Work begins in March.",
    "response": "The council approved the transit plan on Tuesday.",
}


class Up:
    """A `halldetect up` that runs, and what it has printed so far."""

    def __init__(self, home, *options, **environment):
        self.home = home
        self.output = home.with_suffix(".txt")
        with self.output.open("wb") as output:
            self.process = self._run(options, environment, stdin=subprocess.DEVNULL, stdout=output)

    def _run(self, options, environment, **streams):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HALLDETECT_")}
        return subprocess.Popen(
            [COMMAND, "up", "--home", self.home, "--extractor", "sentences", *map(str, options)],
            stderr=subprocess.STDOUT,
            env={**inherited, **environment},
            **streams,
        )

    @property
    def printed(self):
        return self.output.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, holds):
        """Wait until `holds` is true of the running stack, and return that stack."""
        while self.process.poll() is None:
            stack = read_running_stack(self.home)
            if stack is not None and holds(stack):
                return stack
            time.sleep(0.1)
        raise AssertionError(f"up ended with {self.process.returncode}:\n{self.printed}")

    def stop(self, number=signal.SIGTERM):
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait()


class UpOnTerminal(Up):
    """The same, at a terminal of its own."""

    def __init__(self, home):
        self.home = home
        self.output = home.with_suffix(".screen")
        self.output.touch()
        self._terminal, theirs = pty.openpty()
        self.process = self._run(
            (),
            {"TERM": "xterm", "COLUMNS": "120", "LINES": "60"},
            stdin=theirs,
            stdout=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with self.output.open("wb", buffering=0) as output:
            with suppress(OSError):  # how Linux says that the other side has gone
                while content := os.read(self._terminal, 65536):
                    output.write(content)
            os.close(self._terminal)

    def press_ctrl_c(self):
        """Have the terminal interrupt what runs in it, and return its exit code."""
        os.write(self._terminal, b"\x03")
        code = self.process.wait()
        self._reader.join()
        return code


@pytest.fixture(scope="module")
def new_home(tmp_path_factory):
    """Makes places for a home that is not there yet."""
    return lambda: tmp_path_factory.mktemp("stack") / "home"


@pytest.fixture(scope="module")
def start(new_home):
    """Starts stacks, and stops those that still run."""
    ups = []

    def run(*options, home=None, **environment):
        ups.append(Up(home or new_home(), *options, **environment))
        return ups[-1]

    yield run
    for up in ups:
        if up.process.poll() is None:
            up.stop()


@pytest.fixture(scope="module")
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def up(start, taken):
    """A stack that is ready, whose wanted API port was taken."""
    up = start("--port", taken)
    up.wait_until(lambda stack: stack.is_ready)
    return up


def part(stack, name):
    return next(child for child in stack.children if child.name == name)


def runs(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def get(url, user=None):
    request = urllib.request.Request(url)
    if user is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def post(url, content):
    request = urllib.request.Request(url, json.dumps(content).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def audited(url):
    """Wait for an audit's end, and return it."""
    while True:
        audit = get(url)
        if audit["status"] in ("completed", "failed"):
            return audit
        time.sleep(0.2)


def test_every_part_runs_and_an_audit_goes_through_all_of_them(up):
    stack = read_running_stack(up.home)
    assert {child.name for child in stack.children} == PARTS
    audit = post(f"{stack.api_url}/v1/audits", RECORD)
    done = audited(f"{stack.api_url}/v1/audits/{audit['id']}")
    assert done["status"] == "completed"
    assert [claim["verdict"] for claim in done["claims"]] == ["supported"]


def test_a_taken_port_is_replaced_and_the_new_one_said(up, taken):
    stack = read_running_stack(up.home)
    assert f"port {taken} is taken: api listens on" in up.printed
    assert not stack.api_url.endswith(f":{taken}")
    assert f"API: {stack.api_url}/docs" in up.printed


def test_workers_and_the_api_tell_their_figures_where_the_status_says(up, halldetect):
    status = json.loads(halldetect("status", "--json", HALLDETECT_HOME=str(up.home)).stdout)
    urls = {child["name"]: child["metrics_url"] for child in status["children"]}
    assert {name for name, url in urls.items() if url} == {
        "api",
        "extraction",
        "nli",
        "maintenance",
    }
    for name in ("extraction", "nli", "maintenance"):
        with urllib.request.urlopen(urls[name]) as answer:
            assert b'halldetect_worker_state{state="ready"} 1.0' in answer.read()
        assert f"metrics of {name}: {urls[name]}" in up.printed
    with urllib.request.urlopen(urls["api"]) as answer:
        assert b"halldetect_waiting_audits" in answer.read()


def test_everything_listens_on_loopback_only(up):
    stack = read_running_stack(up.home)
    addresses = {
        connection.laddr.ip
        for child in stack.children
        for connection in psutil.Process(child.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


def test_flower_shows_the_workers_to_those_who_know_the_password(up):
    stack = read_running_stack(up.home)
    user, _, place = stack.flower_url.removeprefix("http://").rpartition("@")
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(f"http://{place}/api/workers")
    refused.value.close()
    assert refused.value.code == 401
    shown = set()
    while shown != {"extraction", "nli", "maintenance"}:  # who does not answer in a second is not
        workers = get(f"http://{place}/api/workers?refresh=1", user)
        shown = {name.partition("@")[0] for name in workers}


# Without its password Flower shows figures, and its own pictures and forms.
FLOWER_IS_OPEN = {"/metrics", "/healthcheck", "/login/?", "/logout", "/static/(.*)", ".*"}
WRONG = {"Authorization": f"Basic {base64.b64encode(b'halldetect:guess').decode()}"}


def status_of(url, method, headers):
    request = urllib.request.Request(url, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_flower_wants_its_password_wherever_it_shows_or_does_something(up):
    place = read_running_stack(up.home).flower_url.rpartition("@")[2]
    addresses = {
        page[0] if isinstance(page, tuple) else page.regex.pattern.rstrip("$")
        for page in flower.urls.handlers
    }
    assert addresses > FLOWER_IS_OPEN
    for address in addresses - FLOWER_IS_OPEN:
        path = address.replace("(.+)", "x").replace("(.*)", "x")
        statuses = [
            status_of(f"http://{place}{path}", method, headers)
            for method in ("GET", "POST")
            for headers in ({}, WRONG)
        ]
        assert 401 in statuses, path
        assert set(statuses) <= {401, 405}, path  # 405: it does not take this method at all


def test_no_password_is_visible_to_other_users(up):
    stack = read_running_stack(up.home)
    secrets = [(up.home / part / "password").read_text() for part in ("postgres", "valkey")]
    secrets.append((up.home / "flower-password").read_text())
    for child in stack.children:
        arguments = " ".join(psutil.Process(child.pid).cmdline())
        assert not any(secret in arguments for secret in secrets)
    for file in ("run/stack.json", "flower-password", "postgres/password", "valkey/password"):
        assert (up.home / file).stat().st_mode & 0o077 == 0


def test_a_second_up_says_that_one_runs_and_where(up, halldetect):
    second = halldetect("up", "--home", up.home)
    stack = read_running_stack(up.home)
    assert second.returncode == 2
    assert f"already (process {up.process.pid})" in second.stderr.decode()
    assert f"{stack.api_url}/docs" in second.stdout.decode()
    assert read_running_stack(up.home) == stack


def test_status_shows_what_runs(up, halldetect):
    shown = halldetect("status", HALLDETECT_HOME=str(up.home))
    assert shown.returncode == 0
    text = shown.stdout.decode()
    for part in PARTS:
        assert part in text
    assert "nli-minilm" in text
    assert "audits/s" in text
    as_json = json.loads(halldetect("status", "--json", HALLDETECT_HOME=str(up.home)).stdout)
    assert as_json["is_ready"]
    assert [queue["stage"] for queue in as_json["queues"]] == ["extraction", "verification"]
    assert {worker["state"] for worker in as_json["workers"]} == {"ready"}


def test_a_part_that_dies_is_started_again(up):
    before = part(read_running_stack(up.home), "maintenance").pid
    os.kill(before, signal.SIGKILL)
    up.wait_until(
        lambda stack: stack.is_ready and part(stack, "maintenance").pid not in (None, before)
    )
    assert "maintenance was ended by SIGKILL unexpectedly" in up.printed
    assert "maintenance is started again in 1 s" in up.printed


def test_a_stop_ends_every_process_and_a_second_start_finds_the_data(up, start, halldetect):
    stack = read_running_stack(up.home)
    audit = audited(f"{stack.api_url}/v1/audits/{post(f'{stack.api_url}/v1/audits', RECORD)['id']}")
    children = [psutil.Process(child.pid) for child in stack.children]
    assert up.stop() == 0
    assert not any(map(runs, children))
    assert f"stopped; the data stays in {up.home}" in up.printed
    assert not (up.home / "run" / "stack.json").exists()
    nothing = halldetect("status", HALLDETECT_HOME=str(up.home))
    assert nothing.returncode == 2
    assert f"no stack runs in {up.home}" in nothing.stderr.decode()

    again = UpOnTerminal(up.home)
    stack = again.wait_until(lambda stack: part(stack, "nli").state == "running")
    again.wait_until(lambda stack: "nli-minilm" in again.printed)
    assert get(f"{stack.api_url}/v1/audits/{audit['id']}") == audit
    # The terminal interrupts the command alone; it stops the others in its own order.
    assert again.press_ctrl_c() == 0
    assert "SIGINT" not in again.printed
    assert f"stopped; the data stays in {up.home}" in again.printed


def test_what_a_killed_stack_left_is_stopped_and_the_next_one_starts(start):
    killed = start()
    stack = killed.wait_until(lambda stack: part(stack, "nli").pid is not None)
    pids = [child.pid for child in stack.children if child.pid is not None]
    left = [psutil.Process(pid) for pid in pids]
    killed.stop(signal.SIGKILL)
    assert read_running_stack(killed.home) is None
    again = start(home=killed.home)
    again.wait_until(lambda stack: part(stack, "postgres").state == "running")
    assert not any(map(runs, left))
    assert again.stop() == 0


def test_servers_of_your_own_are_used_and_not_started(start, empty_database, redis_url):
    up = start(DATABASE_URL=empty_database, REDIS_URL=redis_url)
    stack = up.wait_until(lambda stack: part(stack, "api").state == "running")
    assert {child.name for child in stack.children} == PARTS - {"postgres", "valkey"}
    assert (stack.database_url, stack.redis_url) == (empty_database, redis_url)
    assert not (up.home / "postgres").exists()
    assert not (up.home / "valkey" / "valkey.conf").exists()
    assert up.stop() == 0


@pytest.mark.parametrize(
    ("variable", "address", "said"),
    [
        ("DATABASE_URL", "postgresql://halldetect:secret@127.0.0.1:9/x", "the database cannot be"),
        ("DATABASE_URL", "mysql://127.0.0.1/x", "DATABASE_URL must be postgresql://"),
        ("REDIS_URL", "redis://:secret@127.0.0.1:9/0", "REDIS_URL: the server cannot be used"),
        ("REDIS_URL", "amqp://127.0.0.1", "REDIS_URL: the server cannot be used"),
    ],
)
def test_a_server_that_cannot_be_used_is_said_and_all_is_stopped(start, variable, address, said):
    up = start(**{variable: address})
    assert up.process.wait() in (2, 4)
    assert said in up.printed
    assert "secret" not in up.printed
    assert read_running_stack(up.home) is None


def test_a_home_that_is_no_folder_is_an_error(halldetect, tmp_path):
    (tmp_path / "file").touch()
    done = halldetect("up", "--home", tmp_path / "file")
    assert done.returncode == 4
    assert "set HALLDETECT_HOME or --home" in done.stderr.decode()
