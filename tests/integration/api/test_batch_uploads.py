"""Batches in: all lines or none, every fault told with its physical line."""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc

import pytest
import redis
from sqlalchemy import text

JSONL = {"Content-Type": "application/jsonl"}


@pytest.fixture
def nothing_stored(stored):
    def check():
        assert [stored(table) for table in ("batches", "audits", "documents")] == [0, 0, 0]

    return check


def faults(answer):
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert document["type"] == "urn:halldetect:problem:batch-refused"
    return [(fault["line"], fault.get("column"), fault["message"]) for fault in document["errors"]]


def test_a_batch_is_stored_and_found_at_its_location(client, upload, record):
    answer = upload(record("a"), record("b"))
    assert answer.status_code == 202
    assert answer.json() == {"id": "1", "total": 2, "status": "in_progress"}
    batch = client.get(answer.headers["Location"]).json()
    assert (batch["id"], batch["total"], batch["waiting"], batch["queued"]) == ("1", 2, 2, 2)


def test_one_worker_is_woken_for_the_whole_batch(upload, record, redis_url):
    upload(*(record(str(number)) for number in range(50)))
    with redis.Redis.from_url(redis_url) as broker:
        (message,) = broker.lrange("extraction", 0, -1)
    assert "'batch_id': 1" in json.loads(message)["headers"]["kwargsrepr"]


@pytest.mark.parametrize("lines_end", [b"\n", b"\r\n"])
def test_blank_lines_count_and_are_passed_over(client, record, lines_end, sessions):
    lines = [record("a"), None, record("b"), None, None, record("c")]
    body = lines_end.join(b" \t" if line is None else json.dumps(line).encode() for line in lines)
    answer = client.post("/v1/batches", content=body, headers=JSONL)
    assert answer.json()["total"] == 3
    with sessions() as session:
        rows = session.execute(text("SELECT line, custom_id FROM halldetect.audits ORDER BY line"))
        assert [tuple(row) for row in rows] == [(1, "a"), (3, "b"), (6, "c")]


def test_a_fault_names_the_physical_line_of_a_file_with_blank_lines(client, record, nothing_stored):
    a, b, c = (json.dumps(record(name)).encode() for name in "abc")
    bad = c.replace(b'"The mill closed in 1998."', b"7")
    body = a + b"\r\n\r\n" + b + b"\r\n" + bad
    assert bad != c
    found = faults(client.post("/v1/batches", content=body, headers=JSONL))
    assert [line for line, _, _ in found] == [4]
    assert "field source" in found[0][2]
    nothing_stored()


def test_a_byte_order_mark_is_dropped(client, record, jsonl):
    body = b"\xef\xbb\xbf" + jsonl(record("a"))
    assert client.post("/v1/batches", content=body, headers=JSONL).status_code == 202


def test_separators_inside_strings_end_no_line_in_or_out(client, upload, record):
    odd = {"source": "one\u2028two\u0085three.", "response": "two\u2029three\x0b\x0c\x1c."}
    literal = json.dumps(record("a", **odd), ensure_ascii=False).encode()
    assert "\u2028".encode() in literal
    assert upload(literal, record("b", metadata={"\u2028": "\u0085"})).json()["total"] == 2
    results = client.get("/v1/batches/1/results").content
    assert results.count(b"\n") == 2
    lines = results.decode().splitlines()  # cuts wherever Python sees a line end
    assert [json.loads(line)["custom_id"] for line in lines] == ["a", "b"]
    assert json.loads(lines[0])["response"] == odd["response"]
    assert json.loads(lines[1])["metadata"] == {"\u2028": "\u0085"}


def test_every_faulty_line_is_listed_with_its_column(upload, record, nothing_stored):
    bad_json = b'{"custom_id": "c", "source": "S", }'
    found = faults(
        upload(
            record("a"),
            record("b"),
            bad_json,
            b'{"source": "S\xc3\xa9\xff"}',
            b'{"source": "S."}',
            record("d", source="One.\0Two."),
            record("e", response="\ud800"),
            record("f", claim_margin=1),
            b'{"source":"A.","response":"A.","response":"B."}',
            b'{"source":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"source":"S.","response":"S.","metadata":{"x":' + b"9" * 10_000 + b"}}",
            record("a"),
            record("g", policy="lenient"),
            b"[]",
        )
    )
    assert [line for line, _, _ in found] == [*range(3, 15)]
    columns = {line: column for line, column, _ in found if column}
    assert columns == {3: bad_json.index(b"}") + 1, 4: 15}
    messages = {line: message for line, _, message in found}
    assert "not UTF-8" in messages[4]
    assert "field response" in messages[5]
    assert "NUL" in messages[6]
    assert "position 4" in messages[6]
    assert "field response" in messages[7]
    assert "'claim_margin'" in messages[8]
    assert "'response' is given twice" in messages[9]
    assert "nested too deeply" in messages[10]
    assert "not valid JSON" in messages[11]
    assert "custom_id 'a'" in messages[12]
    assert "line 1" in messages[12]
    assert "lenient" in messages[13]
    assert "JSON object" in messages[14]
    nothing_stored()


def test_many_faults_are_counted_and_the_first_ones_listed(make_client, jsonl, nothing_stored):
    client = make_client(max_listed_errors=3)
    answer = client.post("/v1/batches", content=b"{}\n" * 10, headers=JSONL)
    assert [line for line, _, _ in faults(answer)] == [1, 2, 3]
    assert answer.json()["total_errors"] == 10
    assert "10 errors in the upload, the first 3 listed" in answer.json()["detail"]
    nothing_stored()


@pytest.mark.parametrize("body", [b"", b"\n \n\r\n", b"\xef\xbb\xbf"])
def test_a_batch_without_any_record_is_refused(client, nothing_stored, body):
    answer = client.post("/v1/batches", content=body, headers=JSONL)
    assert answer.status_code == 422
    assert "no record" in answer.json()["detail"]
    nothing_stored()


def test_a_line_over_a_limit_is_refused_with_the_limit(make_client, record, jsonl, nothing_stored):
    client = make_client(max_characters=50, max_body_bytes=300)
    lines = [
        record("a"),
        record("b", source="e" * 51),
        record("c", metadata={"long": "x" * 300}),
        record("d"),
    ]
    found = faults(client.post("/v1/batches", content=jsonl(*lines), headers=JSONL))
    assert [line for line, _, _ in found] == [2, 3]
    assert "HALLDETECT_MAX_CHARACTERS" in found[0][2]
    assert "more than 300 bytes (HALLDETECT_MAX_BODY_BYTES)" in found[1][2]
    nothing_stored()


def test_too_many_lines_are_refused_with_the_limit(make_client, record, jsonl, nothing_stored):
    client = make_client(max_batch_lines=3)
    lines = [record(str(number)) for number in range(4)]
    answer = client.post("/v1/batches", content=jsonl(*lines), headers=JSONL)
    assert answer.status_code == 413
    assert "more than 3 lines (HALLDETECT_MAX_BATCH_LINES)" in answer.json()["detail"]
    nothing_stored()
    assert client.post("/v1/batches", content=jsonl(*lines[:3]), headers=JSONL).status_code == 202


@pytest.mark.parametrize("packed", [False, True])
def test_too_many_bytes_are_refused_with_the_limit(
    make_client, record, jsonl, nothing_stored, packed
):
    client = make_client(max_upload_bytes=5_000)
    body = jsonl(*(record(str(number)) for number in range(100)))
    headers = {**JSONL, **({"Content-Encoding": "gzip"} if packed else {})}
    sent = gzip.compress(body) if packed else body
    assert packed == (len(sent) < 5_000 < len(body))
    answer = client.post("/v1/batches", content=sent, headers=headers)
    assert answer.status_code == 413
    assert "more than 5,000 bytes" in answer.json()["detail"]
    assert "HALLDETECT_MAX_UPLOAD_BYTES" in answer.json()["detail"]
    nothing_stored()


def test_gzip_is_unpacked(client, record, jsonl):
    parts = [gzip.compress(jsonl(record(name))) for name in "ab"]
    headers = {**JSONL, "Content-Encoding": "gzip"}
    answer = client.post("/v1/batches", content=b"".join(parts), headers=headers)
    assert answer.json()["total"] == 2


def test_damaged_gzip_stores_nothing(client, record, jsonl, nothing_stored):
    body = gzip.compress(jsonl(*(record(str(number)) for number in range(100))))
    headers = {**JSONL, "Content-Encoding": "gzip"}
    for damaged in (body[:-1], body[: len(body) // 2], b"no gzip", body + b"x"):
        answer = client.post("/v1/batches", content=damaged, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["type"] == "urn:halldetect:problem:damaged-upload"
    nothing_stored()


def test_media_types_and_encodings(client, record, jsonl):
    body = jsonl({**record("a")})
    for media_type, encoding, status in (
        ("application/jsonl", "identity", 202),
        ("application/x-ndjson; charset=utf-8", None, 202),
        ("application/x-jsonlines", None, 202),
        ("application/ndjson", None, 202),
        ("application/json", None, 415),
        ("multipart/form-data; boundary=x", None, 415),
        ("", None, 415),
        ("application/jsonl", "br", 415),
        ("application/jsonl", "gzip, gzip", 415),
    ):
        headers = {"Content-Type": media_type}
        if encoding:
            headers["Content-Encoding"] = encoding
        answer = client.post("/v1/batches", content=body, headers=headers)
        assert answer.status_code == status, (media_type, encoding)


def test_options_hold_for_lines_that_do_not_choose(upload, record, sessions):
    lines = [record("a"), record("b", policy="mean", priority=0), record("c", priority=-3)]
    assert upload(*lines, policy="paper", priority=7).status_code == 202
    with sessions() as session:
        rows = session.execute(
            text(
                "SELECT a.custom_id, p.name, a.priority FROM halldetect.audits a"
                " JOIN halldetect.policies p ON p.id = a.policy_id ORDER BY a.line"
            )
        )
        assert [tuple(row) for row in rows] == [
            ("a", "paper", 7),
            ("b", "mean", 0),
            ("c", "paper", -3),
        ]


def test_unknown_fields_are_passed_over_when_asked(upload, record):
    assert upload(record("a", label=1)).status_code == 422
    assert upload(record("a", label=1), unknown_fields="ignore").status_code == 202


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"policy": "lenient"}, "'lenient'.*paper"),
        ({"policy": "a\0"}, "query policy.*NUL"),
        ({"profile": "paper"}, "query profile.*'embedded'.*HALLDETECT_PROFILE"),
        ({"profile": "none"}, "query profile.*'embedded' or 'paper'"),
        ({"priority": "101"}, "query priority"),
        ({"priority": "NaN"}, "query priority"),
        ({"unknown_fields": "keep"}, "query unknown_fields"),
        ({"polcy": "paper"}, "query polcy: is no parameter"),
        ({"policy": ["paper", "mean"]}, "query policy: is given 2 times"),
    ],
)
def test_bad_options_are_refused(upload, record, nothing_stored, options, named):
    answer = upload(record("a"), **options)
    assert answer.status_code == 422
    assert re.search(named, answer.json()["detail"])
    nothing_stored()


def test_the_profile_that_runs_may_be_named(upload, record):
    assert upload(record("a"), profile="embedded").status_code == 202


def test_a_large_batch_is_stored_whole_in_flat_memory(client, record, stored):
    def lines():
        for number in range(20_000):
            yield json.dumps(record(str(number), source=f"Source {number % 700}.")).encode() + b"\n"

    tracemalloc.start()
    answer = client.post("/v1/batches", content=lines(), headers=JSONL)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.json()["total"] == 20_000
    assert (stored("audits"), stored("documents")) == (20_000, 700)
    assert peak < 40 << 20
