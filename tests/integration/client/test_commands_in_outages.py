"""Servers that are stopped for a while under the commands: they wait, and nothing is done twice."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest
from api_process import ApiProcess, wait_until
from sqlalchemy import func, select, text

from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from db.engine import make_engine, session_factory
from db.migrate import upgrade
from db.models import Batch, Webhook

# The patience of a command is about seconds; how long a server takes here is not.
HALLDETECT = (
    "from cli.client import patience; patience.LONGEST_WAIT = 900.0\n"
    "from cli.main import main; main()"
)
COMMANDS = {
    "results": ["results", "1"],
    "failed": ["failed"],
    "policies": ["policies"],
    "submit": ["submit", "FILE"],
    "retry": ["retry", "1"],
    "webhooks add": ["webhooks", "add", "https://hooks.example.org/a"],
}


class Servers:
    """An API process and the servers under it, each of which can be stopped and started."""

    def __init__(self, folder):
        self._folder = folder
        self.postgres = PostgresServer(folder / "postgres", durable=False)
        self.valkey = ValkeyServer(folder / "valkey")
        self.api = None

    def start(self):
        self.postgres.start()
        self.valkey.start()
        upgrade(self.postgres.url)
        self.start_api()

    def stop(self):
        if self.api is not None:
            self.api.stop()
        self.postgres.stop()
        self.valkey.stop()

    def start_api(self):
        if self.api is None:
            self.api = ApiProcess(self._folder, self.postgres.url, self.valkey.url)
        else:
            self.api.start_again()
        self.api.wait_until_it_answers()


@pytest.fixture
def servers(tmp_path):
    servers = Servers(tmp_path)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@pytest.fixture
def sessions(servers):
    engine = make_engine(servers.postgres.url)
    yield session_factory(engine)
    engine.dispose()


class Command:
    """A command that runs in a process of its own."""

    def __init__(self, folder, address, arguments):
        file = folder / "in.jsonl"
        self._errors = folder / f"{'-'.join(arguments[:2])}.stderr"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    HALLDETECT,
                    *(str(file) if a == "FILE" else a for a in arguments),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"HALLDETECT_API_URL": address},
            )

    def tells(self, words):
        return words in self._errors.read_text(encoding="utf-8")

    def has_ended(self):
        return self.process.poll() is not None

    def finish(self):
        output, _ = self.process.communicate(timeout=300)
        return self.process.returncode, output.decode(), self._errors.read_text(encoding="utf-8")


@pytest.fixture
def start(tmp_path, servers):
    started = []

    def run(arguments):
        started.append(Command(tmp_path, servers.api.url, arguments))
        return started[-1]

    yield run
    for command in started:
        command.process.kill()
        command.process.communicate()


def test_every_command_outlasts_servers_that_are_stopped_for_a_while(
    servers, sessions, start, write_records
):
    write_records("It opened in 1900.", "Nobody was hurt.")
    assert start(COMMANDS["submit"]).finish()[0] == 0
    with sessions.begin() as session:
        fail = "UPDATE halldetect.audits SET status = 'failed', finished_at = now(), error = 'odd'"
        session.execute(text(f"{fail} WHERE id = 1"))
    servers.api.stop()
    servers.postgres.stop()
    servers.valkey.stop()  # and stays away: nothing waits for it
    commands = {name: start(arguments) for name, arguments in COMMANDS.items()}
    reasons = ["no service answers", "the database cannot be reached now; nothing was stored"]
    for command in commands.values():
        wait_until(partial(command.tells, reasons[0]))
    servers.start_api()
    for command in commands.values():
        wait_until(partial(command.tells, reasons[1]))
    servers.postgres.start()
    for name, command in commands.items():
        code, output, told = command.finish()
        assert code == 0, (name, told)
        assert [told.count(reason) for reason in reasons] == [1, 1], (name, told)
        assert output or name == "failed", (name, told)
    with sessions() as session:
        assert session.scalar(select(func.count()).select_from(Batch)) == 2
        assert session.scalar(select(func.count()).select_from(Webhook)) == 1
