"""A worker's own server of figures, and clients that are no Prometheus."""

import socket
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry, Counter

from cli.stack.ports import free_port
from worker import metrics_server
from worker.metrics_server import MetricsServer


@pytest.fixture
def port():
    registry = CollectorRegistry()
    Counter("drops", "Of rain.", registry=registry).inc(3)
    port = free_port()
    server = MetricsServer(registry, "127.0.0.1", port)
    yield port
    server.stop()


def exchange(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(request)
        answer = b""
        while part := client.recv(65536):
            answer += part
    return answer


def test_it_answers_and_hangs_up(port):
    answer = exchange(port, b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 200 " in answer.split(b"\r\n")[0]
    assert b"\ndrops_total 3.0\n" in answer
    assert b"Python" not in answer


@pytest.mark.parametrize(
    ("request_line", "status"),
    [(b"GET / HTTP/1.1", b"404"), (b"POST /metrics HTTP/1.1", b"501"), (b"nonsense", b"400")],
)
def test_nothing_else_is_there(port, request_line, status):
    assert status in exchange(port, request_line + b"\r\n\r\n").split(b"\r\n\r\n")[0]


def test_clients_that_never_speak_take_a_few_threads_and_are_cut_off(port, monkeypatch):
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.5)
    silent = [
        socket.create_connection(("127.0.0.1", port), timeout=60)
        for _ in range(metrics_server._MOST_CONNECTIONS)
    ]
    # All are cut off in time, those that found no thread at once; then there is room again.
    for client in silent:
        assert client.recv(1) == b""
        client.close()
    answer = b""
    while b"drops_total" not in answer:
        answer = exchange_or_nothing(port)


def exchange_or_nothing(port):
    try:
        return exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")
    except ConnectionError:  # hung up on: no thread was free yet
        return b""


def test_no_more_threads_than_that_are_taken(port, monkeypatch):
    monkeypatch.setattr(metrics_server._Handler, "timeout", 600)
    silent = [
        socket.create_connection(("127.0.0.1", port), timeout=60)
        for _ in range(metrics_server._MOST_CONNECTIONS)
    ]
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as late,
        suppress(ConnectionError),
    ):
        assert late.recv(1) == b""  # hung up on at once: nobody else is for ten minutes
    for client in silent:
        client.close()
