"""The real API over a real database, and the commands that talk to it."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
import uvicorn
from structlog.testing import capture_logs
from typer.testing import CliRunner

from api.app import create_app
from cli.client import patience
from cli.main import app
from halldetect.settings import Settings

SOURCE = "The mill opened in 1900. It closed in 1950 after a fire. Nobody was hurt."


@pytest.fixture
def api_url(database, redis_url):
    """The address of an API that serves until the test ends."""
    settings = Settings(database_url=database, redis_url=redis_url, max_listed_errors=3)
    config = uvicorn.Config(create_app(settings), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with capture_logs():  # which would be taken for output of the commands
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    listener.close()


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a command of `halldetect` against an API, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    # What the API says is the same however long it takes on a busy machine.
    monkeypatch.setattr(patience, "_SECONDS_BEFORE_A_WORD", 3600.0)

    def call(api_url, *arguments, stdin=None):
        monkeypatch.setenv("HALLDETECT_API_URL", api_url)
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    return call


@pytest.fixture
def halldetect(run, api_url):
    """Runs a command of `halldetect` against the API."""
    return lambda *arguments, **options: run(api_url, *arguments, **options)


@pytest.fixture
def write_records(tmp_path):
    """Writes responses to one source as records to in.jsonl, and returns its content."""

    def write(*responses, **fields):
        lines = [
            json.dumps({"custom_id": f"r{number}", "source": SOURCE, "response": text, **fields})
            for number, text in enumerate(responses, start=1)
        ]
        content = "".join(f"{line}\n" for line in lines)
        (tmp_path / "in.jsonl").write_text(content, encoding="utf-8")
        return content

    return write


@pytest.fixture
def losing_the_first_answer():
    """Relays connections to an API, and loses what it answers on the first."""

    @contextmanager
    def relay(api_url):
        port = int(api_url.rpartition(":")[2])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=_relay, args=(listener, port))
            thread.start()
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()

    return relay


def _relay(listener, port):
    has_lost_one = False
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            upload = threading.Thread(target=_copy, args=(client, server))
            upload.start()
            answer = server.recv(65_536)
            if has_lost_one:
                client.sendall(answer)
                _copy(server, client)
            has_lost_one = True
            with suppress(OSError):  # the client may have gone by itself
                client.shutdown(socket.SHUT_RDWR)
            upload.join()


def _copy(source, target):
    with suppress(OSError):
        while content := source.recv(65_536):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)
