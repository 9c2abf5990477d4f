"""The real application on real servers: in this process, or behind a real socket."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
import uvicorn
from sqlalchemy import text
from starlette.testclient import TestClient

from api.app import create_app
from halldetect.settings import load_settings

JSONL = {"Content-Type": "application/jsonl"}
BASE_URL = "http://localhost"
RECORD = {"source": "The mill closed in 1998.", "response": "The mill closed."}


@pytest.fixture
def settings(database, redis_url):
    def make(**overrides):
        return load_settings(database_url=database, redis_url=redis_url, **overrides)

    return make


@pytest.fixture
def make_client(settings):
    clients = []

    def make(**overrides):
        client = TestClient(create_app(settings(**overrides)), base_url=BASE_URL)
        client.__enter__()
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(make_client):
    return make_client()


@pytest.fixture
def upload(client):
    """Send records, or lines as they are, as a batch."""

    def send(*records, **options):
        return client.post("/v1/batches", content=jsonl(*records), headers=JSONL, params=options)

    return send


@pytest.fixture
def wait_until():
    """Wait for what another thread or process does; far longer than it ever takes."""

    def wait(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.02)

    return wait


@pytest.fixture
def stored(sessions):
    """Count the rows of a table."""

    def count(table):
        with sessions() as session:
            return session.scalar(text(f"SELECT count(*) FROM halldetect.{table}"))

    return count


def jsonl(*records):
    return b"".join(
        (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n"
        for record in records
    )


def record(custom_id, **fields):
    return {"custom_id": custom_id, **RECORD, **fields}


@pytest.fixture(name="jsonl")
def _jsonl():
    return jsonl


@pytest.fixture(name="record")
def _record():
    return record


class Server:
    """The application behind uvicorn, on a port of its own."""

    def __init__(self, app):
        self.app = app
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, access_log=False, lifespan="on")
        )
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = self._socket.getsockname()
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    def connect(self):
        return socket.create_connection(self.address, timeout=30)

    def start(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self):
        self._server.should_exit = True
        self._thread.join(timeout=30)
        self._socket.close()


@pytest.fixture
def make_server(settings):
    servers = []

    def make(**overrides):
        server = Server(create_app(settings(**overrides)))
        server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def server(make_server):
    return make_server()
