"""Ports of the embedded servers that another program takes in the last moment."""

import os
import socket
from contextlib import ExitStack

import psycopg
import pytest
import redis

from cli.stack import addresses
from cli.stack.children import ChildState
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.run_file import RunningStack
from cli.stack.stack import Stack
from halldetect.settings import load_settings


class UntilTheServersRun:
    """Asks a stack to stop as soon as nothing but its services is left to start."""

    is_urgent = False

    def __init__(self, home):
        self._home = home
        self.look = lambda stack: None

    @property
    def is_made(self):
        stack = RunningStack.model_validate_json(self._home.run_file.read_text())
        states = {child.name: child.state for child in stack.children}
        if {states["postgres"], states["valkey"]} != {ChildState.RUNNING}:
            return False
        self.look(stack)
        return True


class Messages(list):
    """A screen that shows nothing."""

    def say(self, message):
        self.append(message)

    def show(self, stack, observation):
        pass


@pytest.fixture
def stack(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("HALLDETECT_")]:
        monkeypatch.delenv(name)
    home = Home(tmp_path)
    home.create()
    requests, screen = UntilTheServersRun(home), Messages()
    made = Stack(load_settings(), home, screen, requests, extraction_workers=1, nli_workers=1)
    made.requests, made.screen = requests, screen
    yield made
    made.stop()


@pytest.fixture
def strangers(monkeypatch):
    """Ports that look free when a server chooses its own, and that others listen on then."""
    with ExitStack() as listening:
        taken = []

        def choose(wanted, host, except_for=()):
            if len(taken) == 2:
                return honest(wanted, host, except_for)
            stranger = listening.enter_context(socket.create_server((host, 0)))
            taken.append(stranger.getsockname()[1])
            return taken[-1]

        honest = addresses.port_or_another
        monkeypatch.setattr(addresses, "port_or_another", choose)
        yield taken


def test_a_server_that_loses_its_port_while_it_starts_takes_another(stack, strangers):
    answers = set()

    def look(running):
        with psycopg.connect(running.database_url) as connection:
            answers.add(connection.execute("SHOW port").fetchone()[0])
        with redis.Redis.from_url(running.redis_url) as client:
            answers.add(client.config_get("port")["port"])

    stack.requests.look = look
    stack.run()
    assert len(strangers) == 2
    assert len(answers) == 2
    assert not {int(port) for port in answers} & set(strangers)
    assert "postgres ended with code 1 while starting" in "\n".join(stack.screen)


def test_a_server_that_cannot_start_for_another_reason_is_the_end(stack, monkeypatch):
    monkeypatch.setattr("cli.stack.valkey._CONFIGURATION", "no-such-setting yes\n")
    with pytest.raises(StackError, match=r"valkey ended with code 1 while starting"):
        stack.run()
