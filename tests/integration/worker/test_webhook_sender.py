"""Requests to receivers that do their worst, over real sockets; only the resolver is replaced."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_address

import pytest
from receivers import CERTIFICATE, Receiver, answers
from structlog.testing import capture_logs

from halldetect.webhook_targets import AllowedTargets
from worker import webhook_sender
from worker.webhook_answers import Answer, AttemptOutcome
from worker.webhook_message import Message
from worker.webhook_sender import WebhookSender, resolve_host

MESSAGE = Message({"Content-Type": "application/json", "webhook-id": "msg_1"}, b'{"type": "x"}')
# Far less than a test may take, and enough for what answers at once.
PATIENT, SHORT = 30.0, 1.0
NOT_PUBLIC = Answer(AttemptOutcome.TARGET, error="its name leads to no public address")
DELIVERED = Answer(AttemptOutcome.DELIVERED, 200)
NOT_ACCEPTED = Answer(AttemptOutcome.TLS, error="its certificate or its TLS was not accepted")


@pytest.fixture
def receive():
    """Start a receiver."""
    started = []

    def start(handle=None, **options):
        started.append(Receiver(handle, **options))
        return started[-1]

    yield start
    for receiver in started:
        receiver.stop()


@pytest.fixture
def trusted(monkeypatch):
    """Let the receivers' certificate be one that the system trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


def send(url, *, allowed="127.0.0.1", seconds=PATIENT, resolve=None):
    sender = WebhookSender(AllowedTargets.parse(allowed), deadline_seconds=seconds, resolve=resolve)
    return sender.send(url, MESSAGE)


class Names:
    """A resolver that gives one answer after the other, and the last for ever."""

    def __init__(self, *turns):
        self.turns = [[ip_address(address) for address in turn.split()] for turn in turns]
        self.asked = []

    def __call__(self, host, port, seconds):
        self.asked.append(host)
        return self.turns[min(len(self.asked), len(self.turns)) - 1]


def test_a_message_arrives_as_it_is(receive):
    receiver = receive()
    assert send(receiver.url) == DELIVERED
    [request] = receiver.requests
    assert request.line == "POST /hook?token=of-the-receiver HTTP/1.1"
    assert request.body == MESSAGE.body
    assert request.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "connection": "close",
        "content-type": "application/json",
        "content-length": str(len(MESSAGE.body)),
        "webhook-id": "msg_1",
    }


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_2xx_is_a_success(receive, status):
    assert send(receive(answers(status)).url) == Answer(AttemptOutcome.DELIVERED, status)


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 410, 429, 500, 503, 999])
def test_every_other_answer_is_none(receive, status):
    assert send(receive(answers(status)).url) == Answer(
        AttemptOutcome.of_status(status), status, f"it answered {status}"
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receive, status):
    elsewhere = receive()
    receiver = receive(answers(status, f"Location: {elsewhere.url}"))
    assert send(receiver.url) == Answer(
        AttemptOutcome.of_status(status), status, f"it answered {status}"
    )
    assert len(receiver.requests) == 1
    assert elsewhere.requests == []


def say_nothing(connection, request):
    connection.recv(1)  # until the other side has enough


def forever(head, piece, pause):
    def handle(connection, request):
        connection.sendall(head)
        while True:
            connection.sendall(piece)
            threading.Event().wait(pause)

    return handle


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
NO_ANSWERS = {
    "silence": say_nothing,
    "a status line, byte by byte": forever(b"", b"H", 0.05),
    "headers for ever, slowly": forever(OK, b"X-Header: 1\r\n", 0.05),
    "one header for ever, slowly": forever(OK + b"X-Header: ", b"1", 0.05),
    "interim answers for ever": forever(b"", b"HTTP/1.1 102 Processing\r\n\r\n", 0),
}
ENDLESS_ANSWERS = {
    "a body for ever, slowly": forever(CHUNKED, b"1\r\nx\r\n", 0.05),
    "a body for ever, fast": forever(CHUNKED, b"8000\r\n" + b"x" * 0x8000 + b"\r\n", 0),
    "a body without an end": forever(OK + b"\r\n", b"x", 0.05),
    "a body that breaks off": lambda connection, _: connection.sendall(
        OK + b"Content-Length: 9\r\n\r\nx"
    ),
}


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_an_answer_that_never_comes_or_never_ends_is_cut_off(receive, kind):
    assert send(receive(NO_ANSWERS[kind]).url, seconds=SHORT) == Answer(
        AttemptOutcome.TIMEOUT, error="it did not answer within 1 s"
    )


@pytest.mark.parametrize("kind", ENDLESS_ANSWERS)
def test_of_a_body_only_some_is_read_and_the_status_counts(receive, kind, monkeypatch):
    # The time is over after some steps: by the clock, a slow machine may not have the status then.
    steps = iter([PATIENT] * 20)

    def left(_):
        for seconds in steps:
            return seconds
        raise TimeoutError

    monkeypatch.setattr(webhook_sender._Deadline, "left", left)
    assert send(receive(ENDLESS_ANSWERS[kind]).url) == Answer(AttemptOutcome.DELIVERED, 200)


def test_little_is_read_of_a_body_that_comes_fast(receive, monkeypatch):
    taken = []
    read = webhook_sender._BoundedStream.read

    def count(stream, most, timeout=None):
        piece = read(stream, most, timeout)
        taken.append(len(piece))
        return piece

    monkeypatch.setattr(webhook_sender._BoundedStream, "read", count)
    receiver = receive(ENDLESS_ANSWERS["a body for ever, fast"])
    assert send(receiver.url) == DELIVERED
    assert sum(taken) < 4 * 65_536


def test_headers_without_end_are_no_answer(receive):
    receiver = receive(forever(OK, b"X-Header: " + b"1" * 1000 + b"\r\n", 0))
    assert send(receiver.url) == Answer(AttemptOutcome.NO_HTTP, error="what it answered is no HTTP")


@pytest.mark.parametrize("text", [b"SSH-2.0-x\r\n", b"\0\0\0\0", b"HTTP/1.1 two hundred\r\n\r\n"])
def test_what_is_no_http_is_told(receive, text):
    receiver = receive(lambda connection, request: connection.sendall(text + b"\r\n\r\n"))
    assert send(receiver.url) == Answer(AttemptOutcome.NO_HTTP, error="what it answered is no HTTP")


def test_a_connection_that_is_refused_or_lost_is_told(receive, refusing_port):
    lost = Answer(AttemptOutcome.CONNECTION, error="the connection was refused or lost")
    assert send(f"http://127.0.0.1:{refusing_port}/") == lost
    closing = receive(lambda connection, request: None)
    assert send(closing.url).status is None


def test_a_certificate_is_checked_against_the_name(receive, trusted):
    receiver = receive(tls=True)
    port = receiver.port
    good, other = (f"https://{name}.example.org:{port}/hook" for name in ("hooks", "other"))
    resolve = Names("127.0.0.1")
    assert send(good, resolve=resolve) == DELIVERED
    assert receiver.requests[0].headers["host"] == f"hooks.example.org:{port}"
    assert send(other, resolve=resolve) == NOT_ACCEPTED
    assert receiver.server_names == ["hooks.example.org", "other.example.org"]
    assert len(receiver.requests) == 1


def test_a_certificate_that_nobody_knows_is_not_accepted(receive):
    receiver = receive(tls=True)
    url = f"https://hooks.example.org:{receiver.port}/"
    assert send(url, resolve=Names("127.0.0.1")) == NOT_ACCEPTED
    assert receiver.requests == []


def test_a_receiver_without_tls_is_not_sent_anything(receive):
    receiver = receive()
    url = f"https://hooks.example.org:{receiver.port}/secret-path"
    assert send(url, seconds=SHORT, resolve=Names("127.0.0.1")).status is None
    assert "secret-path" not in repr(receiver.requests)


def test_a_handshake_that_never_ends_is_cut_off():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://hooks.example.org:{listener.getsockname()[1]}/"
        answer = send(url, seconds=SHORT, resolve=Names("127.0.0.1"))
    assert answer == Answer(AttemptOutcome.TIMEOUT, error="it did not answer within 1 s")


def test_the_connection_goes_to_the_address_that_was_checked(receive, trusted, monkeypatch):
    """A name that changes its address after the check leads nobody astray: it is asked once."""
    receiver = receive(tls=True)
    looked_up = []
    of_the_system = socket.getaddrinfo

    def getaddrinfo(host, *rest, **options):
        looked_up.append(host)
        return of_the_system(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    rebinding = Names("127.0.0.1", "127.0.0.2")
    url = f"https://hooks.example.org:{receiver.port}/"
    assert send(url, resolve=rebinding) == DELIVERED
    assert rebinding.asked == ["hooks.example.org"]
    assert set(looked_up) == {"127.0.0.1"}
    # The next request asks again, and is refused.
    assert send(url, resolve=rebinding) == Answer(
        AttemptOutcome.TARGET, error="its name leads to no public address"
    )
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "addresses",
    ["127.0.0.1", "127.0.0.1 8.8.8.8", "8.8.8.8 127.0.0.1", "8.8.8.8 ::ffff:7f00:1", "::1", ""],
)
def test_one_address_that_is_not_public_is_one_too_many(receive, addresses, monkeypatch):
    receiver = receive(tls=True)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it connects"))
    url = f"https://hooks.example.org:{receiver.port}/secret-path"
    with capture_logs() as logs:
        answer = send(url, allowed="", resolve=Names(addresses))
    assert answer == NOT_PUBLIC
    [entry] = [log for log in logs if "no public address" in log["event"]]
    assert entry["addresses"] == addresses.split()
    assert entry["target"] == f"https://hooks.example.org:{receiver.port}"


def test_a_name_that_is_not_known_is_told_as_one_that_must_not_be_called():
    def resolve(host, port, seconds):
        raise socket.gaierror(-2, "Name or service not known")

    answer = send("https://hooks.example.org/", resolve=resolve)
    assert answer == NOT_PUBLIC


def test_what_is_not_allowed_any_more_is_not_called(receive):
    receiver = receive()
    answer = send(receiver.url, allowed="")
    assert answer.status is None
    assert "use https" in answer.error
    assert receiver.requests == []


def test_a_resolver_that_does_not_answer_is_not_waited_for(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(60) and [])
    assert send("https://hooks.example.org/", seconds=0.2) == Answer(
        AttemptOutcome.TIMEOUT, error="it did not answer within 0.2 s"
    )
    answered.set()


def test_the_next_address_is_tried_when_one_refuses(receive, trusted):
    receiver = receive(tls=True)
    url = f"https://hooks.example.org:{receiver.port}/"
    assert send(url, allowed="127.0.0.1,::1", resolve=Names("::1 127.0.0.1")) == Answer(
        AttemptOutcome.DELIVERED, 200
    )


def test_proxies_of_the_environment_are_not_used(receive, monkeypatch):
    proxy, receiver = receive(), receive()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert send(receiver.url) == DELIVERED
    assert (len(proxy.requests), len(receiver.requests)) == (0, 1)


def test_names_are_resolved_by_the_system():
    assert ip_address("127.0.0.1") in resolve_host("localhost", 443, PATIENT)
    assert resolve_host("127.0.0.1", 443, PATIENT) == [ip_address("127.0.0.1")]
    with pytest.raises(OSError, match=r".+"):
        resolve_host("a" * 70 + ".example.org", 443, PATIENT)


def test_the_deadline_is_that_of_the_documentation():
    assert webhook_sender.DEADLINE_SECONDS == 10
