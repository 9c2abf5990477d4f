"""What strangers send: every address that reads a body, a query, an id or a header."""

from __future__ import annotations

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx
import psycopg
import pytest

TEXTS = {"source": "The mill closed in 1998.", "response": "It closed."}
RULES = {"claim_value": "entailment", "aggregation": "mean"}
JSON = {"Content-Type": "application/json"}
JSONL = {"Content-Type": "application/jsonl"}
PNG = b"\x89PNG\r\n\x1a\n\xff\xfe"

# Address, a body that is taken, and a text field of it.
BODIES = {
    "/v1/audits": (TEXTS, "response"),
    "/v1/batches": (TEXTS, "response"),
    "/v1/policies": ({"name": "attacked", "rules": RULES}, "name"),
    "/v1/scorings": ({"policy": "paper", "selection": {"custom_id": "a"}}, "policy"),
    "/v1/claims/{claim_id}/reviews": ({"reviewer": "ada", "verdict": "supported"}, "reviewer"),
}


@pytest.fixture(scope="module")
def client(live):
    with httpx.Client(base_url=live.url, headers=live.headers("admin"), timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def count(live):
    """Count what is stored, in all tables that a request can add to."""

    def rows():
        tables = ("audits", "batches", "documents", "policies", "reviews", "rescorings")
        with psycopg.connect(live.database) as connection:
            return [
                connection.execute(f"SELECT count(*) FROM halldetect.{table}").fetchone()[0]
                for table in (*tables, "idempotency_keys")
            ]

    return rows


@pytest.fixture(params=BODIES)
def address(request, live):
    return request.param.format(**live.ids)


@pytest.fixture
def sound(address):
    return next(body for path, body in BODIES.items() if same(path, address))


def same(path, address):
    return re.fullmatch(re.sub(r"\{\w+\}", r"\\w+", path), address) is not None


@pytest.fixture
def refusal(client, address, count):
    """Send a body that must be refused, and return what is said of it."""

    def send(body, *, status=422, headers=None):
        content = body if isinstance(body, bytes) else body.encode()
        kind = JSONL if address == "/v1/batches" else JSON
        before = count()
        answer = client.post(address, content=content, headers=kind | (headers or {}))
        assert answer.status_code == status, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert len(answer.content) < 2_000
        document = json.loads(answer.content.decode("utf-8"), parse_constant=pytest.fail)
        json.dumps(document, ensure_ascii=False).encode("utf-8")
        assert count() == before
        assert client.get("/healthz").status_code == 200
        return json.dumps(document, ensure_ascii=False)

    return send


def with_field(sound, value):
    """Write the body with a piece of raw JSON in its text field."""
    body, field = sound
    return json.dumps(body | {field: "@"}).replace('"@"', value)


@pytest.mark.parametrize("half", [r"\ud800", r"\udc00", r"\udc00\ud800", r"\ud83c"])
def test_half_of_a_surrogate_pair_is_refused_by_field_and_position(refusal, sound, half):
    told = refusal(with_field(sound, f'"Tea {half}."'))
    assert "surrogate" in told
    assert "position 4" in told or "column" in told
    assert sound[1] in told


def test_half_of_a_pair_in_a_name_or_a_custom_id_is_refused(client, count):
    before = count()
    for body in (
        rb'{"source":"A.","response":"A.","\ud800":1}',
        rb'{"source":"A.","response":"A.","custom_id":"a\ud800"}',
        rb'{"source":"A.","response":"A.","metadata":{"\ud800":1}}',
    ):
        for path, kind in (("/v1/audits", JSON), ("/v1/batches", JSONL)):
            answer = client.post(path, content=body, headers=kind)
            assert answer.status_code == 422
            answer.content.decode("utf-8")
    assert count() == before


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"nan"'])
def test_what_is_no_number_is_refused_by_its_field(client, refusal, sound, number):
    if not number.startswith('"'):  # in quotes it is a text like others
        refusal(with_field(sound, number))
    for rule in ("margin", "response_threshold", "entailment_threshold"):
        body = json.dumps({"name": "p", "rules": RULES | {rule: "@"}}).replace('"@"', number)
        answer = client.post("/v1/policies", content=body, headers=JSON)
        assert answer.status_code == 422
        assert rule in answer.text or "is no JSON number" in answer.text
        json.loads(answer.text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (PNG, "image/png"),
        (PNG, None),
        (PNG, "multipart/form-data; boundary=x"),
        (b"--x\r\n\r\nb\r\n--x--", "multipart/form-data; boundary=x"),
        (b"source=A.&response=A.", "application/x-www-form-urlencoded"),
        (b"<a/>", "application/xml"),
    ],
)
def test_a_body_of_another_kind_is_refused_without_a_word_of_it(refusal, live, body, kind):
    said_before = live.process.log.read_text()
    told = refusal(
        body, status=422 if kind is None else 415, headers={"Content-Type": kind} if kind else None
    )
    assert "PNG" not in told
    assert "\ufffd" not in told
    said = live.process.log.read_text().removeprefix(said_before)
    assert '"level": "error"' not in said
    assert "Traceback" not in said


def test_a_name_that_is_given_twice_is_refused(refusal, sound):
    body, field = sound
    once = json.dumps(body)
    told = refusal(f'{once[:-1]}, "{field}": "other"}}')
    assert f"'{field}' is given twice" in told


@pytest.mark.parametrize(
    "value", ["[" * 100_000 + "]" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000, "9" * 10_000]
)
def test_deep_json_and_endless_numbers_are_refused_and_the_next_request_works(
    refusal, sound, client, value
):
    refusal(with_field(sound, value))
    body = json.dumps(sound[0])
    refusal(f'{body[:-1]}, "more": {value}}}')
    assert client.post("/v1/audits", json=TEXTS).status_code == 202


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("gzip", 415),
        ("identity", None),
        ("gzip, gzip", 415),
        ("deflate", 415),
        ("br", 415),
        ("identity, gzip", 415),
        ("x" * 5_000, 415),
    ],
)
def test_bodies_that_are_packed_otherwise_are_refused(client, count, value, status):
    before = count()
    for path, kind in (("/v1/audits", JSON), ("/v1/batches", JSONL)):
        expected = status or 202
        if (path, value) == ("/v1/batches", "gzip"):
            expected = 400  # it is not packed at all
        body = json.dumps(TEXTS).encode()
        answer = client.post(path, content=body, headers={**kind, "Content-Encoding": value})
        assert answer.status_code == expected, (path, answer.text)
        assert len(answer.content) < 1_000
    assert status is None or count() == before


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-16",
        "application/json; charset=",
        "application/json; charset=latin-1; charset=utf-8",
        "application/jsonl; charset=x",
        "text/json",
        "application/jsonp",
        "*/*",
        "json",
        ";",
        "application/json, application/jsonl",
        "\xff",
    ],
)
def test_media_types_that_nobody_reads_are_refused(client, count, kind):
    before = count()
    for path in ("/v1/audits", "/v1/batches"):
        headers = [(b"Content-Type", kind.encode("latin-1"))]
        answer = client.post(path, content=json.dumps(TEXTS).encode(), headers=headers)
        assert answer.status_code == 415, (path, answer.text)
    assert count() == before


IDS = [
    *("0", "-1", "+1", "01", "1.0", "1e0", "0x1", "1_0", " 1", "1 ", "9" * 19, "9" * 4_000),
    *("%D9%A1", "%F0%9D%9F%8F", "%EF%BC%91", "%C2%B2", "%00", "1%00", "%0A1", "1%0A", "%ED%A0%80"),
    *("%FF", "None", "null", "true", "NaN", "..%2F1", "1%2F..", "1;2", "1'--", "%2e"),
]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/audits/{}",
        "/v1/audits/{}/retry",
        "/v1/batches/{}",
        "/v1/batches/{}/results",
        "/v1/batches/{}/cancel",
        "/v1/batches/{}/retry",
        "/v1/batches/{}/flagged-claims?reviewer=a",
        "/v1/batches/{}/review-summary",
        "/v1/claims/{}/reviews",
        "/v1/reviews/{}",
        "/v1/scorings/{}",
        "/v1/scorings/{}/comparison",
        "/v1/policies/{}",
    ],
)
def test_ids_that_nothing_has_are_not_found(live, path):
    method = "POST" if path.endswith(("retry", "cancel")) else "GET"
    for number in IDS:
        answer = raw(live, method, path.format(number.replace(" ", "%20")))
        status, _, body = answer.partition(b"\r\n")
        assert status.startswith(b"HTTP/1.1 404 "), (number, status)
        assert b"application/problem+json" in body


def raw(live, method, target, headers=b"", body=b""):
    """Send a request as it stands, which a client would put in order first."""
    key = live.headers("admin")["Authorization"].encode()
    lines = [
        f"{method} {target} HTTP/1.1".encode(),
        b"Host: x",
        b"Connection: close",
        b"Authorization: " + key,
    ]
    with socket.create_connection(("127.0.0.1", live.process.port), timeout=60) as connection:
        connection.sendall(b"\r\n".join(lines) + b"\r\n" + headers + b"\r\n" + body)
        received = b""
        while data := connection.recv(65536):
            received += data
    return received


QUERIES = [
    *("limit=0", "limit=1001", "limit=-1", "limit=1e2", "limit=", "limit=NaN", "limit=%D9%A1"),
    *("limit=" + "9" * 5_000, "limit=1&limit=2", "limit[]=1", "unknown=1", "=", "a=%00", "%00=1"),
    *("cursor=%00", "cursor=%FF", "cursor=" + "A" * 300, "cursor=A", "cursor=%D9%A1"),
]
FILTERS = [
    *("batch_id=0", "batch_id=-1", "batch_id=9223372036854775808", "batch_id=1.5", "batch_id=x"),
    *("status=done", "label=", "policy=%00", "custom_id=a%00", "submitted_from=2026"),
    *("submitted_from=1e9", "submitted_from=2026-01-01", "submitted_from=2026-01-01T00:00:00"),
    *("submitted_from=0000-01-01T00:00:00Z", "submitted_before=99999-01-01T00:00:00Z"),
]


@pytest.mark.parametrize(
    ("path", "queries"), [("/v1/audits", QUERIES + FILTERS), ("/v1/batches", QUERIES)]
)
def test_queries_that_mean_nothing_are_refused(live, path, queries):
    for query in queries:
        answer = raw(live, "GET", f"{path}?{query}")
        assert answer.split(b" ", 2)[1] in (b"400", b"422"), (query[:50], answer[:500])
        assert len(answer) < 2_000
    assert raw(live, "GET", f"{path}?limit=1").startswith(b"HTTP/1.1 200 ")


KEYS = [b"", b" ", b"  \t", b"\xff", b"\xc3\xa9", b"a\tb", b"x" * 256, b"\x7f"]


@pytest.mark.parametrize("path", ["/v1/audits", "/v1/batches", "/v1/scorings"])
def test_idempotency_keys_are_printable_and_short(live, count, path):
    before = count()
    body = json.dumps(BODIES[path][0]).encode()
    kind = b"application/jsonl" if path == "/v1/batches" else b"application/json"
    for key in KEYS:
        headers = b"Content-Type: %b\r\nContent-Length: %d\r\nIdempotency-Key: %b\r\n"
        answer = raw(live, "POST", path, headers % (kind, len(body), key), body)
        assert answer.startswith(b"HTTP/1.1 422 "), key
        assert b"Idempotency-Key" in answer
    assert count() == before


@pytest.mark.parametrize("path", ["/v1/audits", "/v1/batches", "/v1/scorings"])
def test_twenty_at_once_with_one_key_are_one_request(live, client, count, path):
    key = {"Idempotency-Key": f"twenty {path}"}
    kind = JSONL if path == "/v1/batches" else JSON
    body = json.dumps(BODIES[path][0]).encode()
    table = {"/v1/audits": 0, "/v1/batches": 1, "/v1/scorings": 5}[path]
    before, barrier = count()[table], Barrier(20)

    def send(_):
        with httpx.Client(base_url=live.url, headers=live.headers("admin"), timeout=60) as one:
            barrier.wait()
            return one.post(path, content=body, headers=kind | key)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(send, range(20)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    accepted = {answer.content for answer in answers if answer.status_code == 202}
    assert len(accepted) == 1
    assert count()[table] == before + 1
    again = client.post(path, content=body, headers=kind | key)
    assert again.content in accepted
    other = client.post(path, content=body + b" \n", headers=kind | key)
    assert other.status_code == 422
    assert count()[table] == before + 1
