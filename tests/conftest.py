"""Real servers for the tests: one Postgres and one Valkey a run, fresh databases a test."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings
from sqlalchemy import text
from sqlalchemy.engine import make_url

from cli.stack.errors import StackError
from cli.stack.postgres import PostgresServer
from cli.stack.valkey import ValkeyServer
from db.engine import make_engine, session_factory
from db.migrate import upgrade

_Server = TypeVar("_Server", PostgresServer, ValkeyServer)
_numbers = itertools.count()
_TOOLS = Path(__file__).resolve().parents[1] / ".venv" / "tools"

# Of the terminal and the service of whoever runs the tests; commands are told what they need.
_NOT_INHERITED = (
    *("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "DATABASE_URL", "REDIS_URL"),
    *(name for name in os.environ if name.startswith("HALLDETECT_")),
)
for _name in _NOT_INHERITED:
    os.environ.pop(_name, None)

# How long an example takes says nothing on a machine that has other things to do.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_unconfigure() -> None:
    """Close what llama-cpp-python opens when it is imported, and leaves to the end of Python."""
    if llama_cpp := sys.modules.get("llama_cpp._utils"):
        llama_cpp.outnull_file.close()
        llama_cpp.errnull_file.close()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory) -> Iterator[PostgresServer]:
    folder = tmp_path_factory.mktemp("postgres")
    server = _started(lambda: PostgresServer(folder, durable=False))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _template(postgres) -> str:
    url = _new_database(postgres.url, "template_migrated")
    upgrade(url)
    return "template_migrated"


@pytest.fixture
def empty_database(postgres) -> Iterator[str]:
    """The address of a database without any table of ours."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield _new_database(postgres.url, name)
    _drop(postgres.url, name)


@pytest.fixture
def database(postgres, _template) -> Iterator[str]:
    """The address of a fresh database, migrated, with the built-in policies."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield _new_database(postgres.url, name, template=_template)
    _drop(postgres.url, name)


@pytest.fixture(scope="module")
def module_database(postgres, _template) -> Iterator[str]:
    """The address of one such database for all tests of a module."""
    name = f"module_{os.getpid()}_{next(_numbers)}"
    yield _new_database(postgres.url, name, template=_template)
    _drop(postgres.url, name)


@pytest.fixture
def engine(database):
    engine = make_engine(database)
    yield engine
    engine.dispose()


@pytest.fixture
def sessions(engine):
    return session_factory(engine)


@pytest.fixture
def execute(sessions):
    """Change rows behind everybody's back; return how many."""

    def run(statement, **values):
        with sessions.begin() as session:
            return session.execute(text(statement), values).rowcount

    return run


@pytest.fixture(scope="session")
def _valkey(tmp_path_factory) -> Iterator[ValkeyServer]:
    folder = tmp_path_factory.mktemp("valkey")
    server = _started(lambda: ValkeyServer(folder))
    yield server
    server.stop()


@pytest.fixture
def redis_url(_valkey) -> Iterator[str]:
    """The address of a Redis-protocol server with nothing in it."""
    with redis.Redis.from_url(_valkey.url) as client:
        client.flushall()
    yield _valkey.url
    with redis.Redis.from_url(_valkey.url) as client:
        client.flushall()


def _started(make_server: Callable[[], _Server]) -> _Server:
    """Start a server, at another port if somebody else has taken the one that was free."""
    while True:
        server = make_server()
        try:
            server.start()
        except StackError as error:
            if "already in use" not in str(error):
                raise
        else:
            return server


def _new_database(server_url: str, name: str, template: str = "template1") -> str:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


def _drop(server_url: str, name: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus's checker of alert rules."""
    return _tool("promtool")


@pytest.fixture(scope="session")
def libfaketime() -> Path:
    """The library that gives one process another clock, for LD_PRELOAD."""
    return _tool("libfaketime.so.1")


def _tool(name: str) -> Path:
    path = _TOOLS / name
    if not path.exists():
        reason = f"{name} is not in .venv/tools, where `make test` puts it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return path
