"""Where a request ends: whoever reads it otherwise than a proxy before it answers one too many."""

from __future__ import annotations

import json

import pytest

LENGTH, CHUNKED = b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"
EMPTY = b"0\r\n\r\n"
NEXT = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: second\r\n\r\n"


@pytest.fixture(scope="module")
def process(module_database, redis_of_module, start_api):
    return start_api(module_database, redis_of_module)


@pytest.fixture
def exchange(process):
    """Send a request and another one behind it; return all there is until the service closes."""

    def run(fields, body=EMPTY, *, method=b"POST", target=b"/v1/audits", version=b"1.1"):
        head = b"%b %b HTTP/%b\r\nHost: localhost\r\n%b\r\n" % (method, target, version, fields)
        with process.connect() as connection:
            connection.sendall(head + body + NEXT)
            received = b""
            while data := connection.recv(65536):
                received += data
        return received

    return run


@pytest.fixture
def refused(exchange, process):
    """Tell what is said, once, of a request after which the connection is closed."""

    def run(*args, **options):
        answer = exchange(*args, **options)
        assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
        assert answer.count(b"HTTP/1.1 ") == 1
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"connection: close" in head.lower()
        assert b"second" not in answer
        assert process.request("GET", "/healthz")[0] == 200
        return body

    return run


@pytest.mark.parametrize("length", [b"0", b"5", b"99999"])
@pytest.mark.parametrize(
    ("method", "target"), [(b"POST", b"/v1/audits"), (b"GET", b"/healthz"), (b"PUT", b"/nowhere")]
)
def test_a_length_beside_chunks_is_refused_and_nothing_behind_it_is_read(
    refused, length, method, target
):
    length = b"Content-Length: %b\r\n" % length
    for fields in (length + CHUNKED, CHUNKED + length):
        body = refused(fields, method=method, target=target)
        assert "Transfer-Encoding" in json.loads(body)["detail"]


@pytest.mark.parametrize(
    "fields",
    [
        b"content-LENGTH: 5\r\ntransfer-ENCODING: CHUNKED\r\n",
        b"Transfer-Encoding:\r\n chunked\r\n" + LENGTH,
        b"Transfer-Encoding:\tchunked \r\nContent-Length:\r\n\t5\r\n",
        LENGTH + LENGTH + CHUNKED,
    ],
)
def test_however_the_two_are_written(refused, fields):
    refused(fields)


@pytest.mark.parametrize(
    "fields",
    [
        LENGTH + b"Content-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: 5 5\r\n",
        b"Content-Length: 5\r\n 6\r\n",
        b"Content-Length:\r\n",
        b"Content-Length : 5\r\n",
        b"Content-Length: 5\x00\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: chunked;x=1\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b"Transfer-Encoding:\r\n",
        b"Transfer-Encoding : chunked\r\n",
        CHUNKED + CHUNKED,
        CHUNKED + b"Transfer-Encoding: identity\r\n",
        b"X: y\rTransfer-Encoding: chunked\r\n",
    ],
)
def test_fields_that_tell_no_one_end_are_refused(refused, fields):
    refused(fields)


@pytest.mark.parametrize(
    "chunks",
    [
        b"0x1\r\nA\r\n",
        b"-1\r\nA\r\n",
        b"1\r\nAB\r\n",
        b"1\r\nA0\r\n\r\n",
        b"\r\n",
        b"G\r\n",
        b"1;\n",
    ],
)
def test_chunks_that_are_none_are_refused(refused, chunks):
    refused(CHUNKED + b"Content-Type: application/json\r\n", chunks + EMPTY)


def test_a_folded_line_belongs_to_the_field_before_it(exchange):
    answers = exchange(b"X: y\r\n Transfer-Encoding: chunked\r\nConnection: close\r\n", b"")
    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.startswith(b"HTTP/1.1 4")


def test_an_older_client_that_sends_chunks_gets_one_answer(exchange):
    answers = exchange(CHUNKED + b"Connection: keep-alive\r\n", version=b"1.0")
    assert answers.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (CHUNKED, EMPTY),
        (CHUNKED, b"2;a=b\r\n{}\r\n0\r\nTrailer: x\r\n\r\n"),
        (b"Content-Length: 2\r\n", b"{}"),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n", b"{}"),
        (b"", b""),
    ],
)
def test_a_request_whose_end_is_plain_is_followed_by_the_next(process, fields, body):
    head = b"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with process.connect() as connection:
        connection.sendall(head + fields + b"\r\n" + body + NEXT)
        received = b""
        while b'"ok"' not in received:
            data = connection.recv(65536)
            assert data, received
            received += data
    assert received.count(b"HTTP/1.1 ") == 2
    assert received.startswith(b"HTTP/1.1 4")
