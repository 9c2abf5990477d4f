"""The API as a process of its own: ``python -m api``, on a free port."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

import psutil


class ApiProcess:
    """Starts the API and speaks to it over sockets."""

    def __init__(self, folder, database_url, redis_url, **settings):
        self._folder = folder
        kept = {name: value for name, value in os.environ.items() if "HALLDETECT" not in name}
        variables = {f"HALLDETECT_{name.upper()}": str(value) for name, value in settings.items()}
        servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        self._environment = kept | servers | variables
        self._start()

    def start_again(self):
        """Start it where it was."""
        self._start(self.port)

    def _start(self, port=None):
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = self._folder / f"api-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "api"],
                stdout=log,
                stderr=log,
                env=self._environment | {"HALLDETECT_API_PORT": str(self.port)},
            )
        self._process_seen = psutil.Process(self.process.pid)

    def wait_until_it_answers(self):
        wait_until(self._answers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.kill()

    def connect(self, receive_buffer=None):
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def request(self, method, path, body=None, headers=None):
        """Send a request; return the status, the headers and the body of its answer."""
        request = urllib.request.Request(f"{self.url}{path}", body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def entries(self, event=None):
        """Return what it has logged; a line that is being written counts when it is whole."""
        *whole, _ = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        lines = [json.loads(line) for line in whole]
        return [line for line in lines if event is None or event in line["event"]]

    def entries_so_far(self, event=None):
        """Return what it has logged once all answers that were received are in its log."""
        marker = uuid.uuid4().hex
        self.request("GET", "/healthz", headers={"X-Request-ID": marker})
        wait_until(lambda: any(line.get("request_id") == marker for line in self.entries()))
        return self.entries(event)

    def memory(self):
        """Return how many bytes of memory it holds."""
        return self._process_seen.memory_info().rss

    def connections_held(self):
        """Count the connections of clients that it has not closed."""
        return sum(
            connection.laddr.port == self.port and connection.status == psutil.CONN_ESTABLISHED
            for connection in self._process_seen.net_connections(kind="tcp")
        )

    def _answers(self):
        if self.process.poll() is not None:
            said = self.log.read_text()
            assert "address already in use" in said, said
            self._start()  # somebody else took the port before it did
        try:
            return self._listens() and self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def _listens(self):
        """Tell whether this very process has the port."""
        try:
            connections = self._process_seen.net_connections(kind="tcp")
        except psutil.Error:
            return False
        return any(
            connection.laddr.port == self.port and connection.status == psutil.CONN_LISTEN
            for connection in connections
        )


def wait_until(holds, seconds=120):
    """Wait for what another process does; far longer than it ever takes."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
