"""Uploads of any bytes to a live API: stored whole, or not at all and each faulty line named."""

from __future__ import annotations

import gzip
import itertools
import json

import httpx
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from halldetect.errors import InputError
from halldetect.record import parse_record

SOUND = {"source": "The mill closed in 1998.", "response": "It closed."}
UNSOUND = (
    b"{",
    b"[" * 30_000 + b"]" * 30_000,
    b'{"source":"A.","response":"A.","metadata":{"n":' + b"9" * 10_000 + b"}}",
    b'{"source":"A.","response":"A.","metadata":{"n":1e999}}',
    b'{"source":"A.","response":"A.","metadata":{"n":NaN}}',
    b'{"source":"A.","response":"A.","response":"B."}',
    b'{"source":"A.","response":"A.","metadata":{"n":1,"n":1}}',
    rb'{"source":"A.","response":"\u0000"}',
    b'{"source":"A.","response":"\x00"}',
    rb'{"source":"A.","response":"\ud800"}',
    rb'{"source":"A.","response":"A.","metadata":{"\udfff":1}}',
    b'{"source":"A.","response":"\xed\xa0\x80"}',
    b'{"source":"A.","response":"\xff"}',
    b'\xef\xbb\xbf{"source":"A.","response":"A."}',
    b'{"source":" ","response":"A."}',
    b'{"source":"A.","response":"A.","extra":1}',
    b"\r",
    b"\x0b",
    b"null",
)
_numbers = itertools.count()


def sound_line(number):
    return json.dumps({**SOUND, "custom_id": f"line {number}"}).encode()


LINES = st.one_of(
    st.sampled_from(UNSOUND),
    st.binary(max_size=20).filter(lambda line: b"\n" not in line),
    st.none(),
)
FILES = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n"])), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def client(live):
    with httpx.Client(base_url=live.url, headers=live.headers("user"), timeout=60) as client:
        yield client


def count(live):
    with psycopg.connect(live.database) as connection:
        tables = ("batches", "audits", "documents")
        return [
            connection.execute(f"SELECT count(*) FROM halldetect.{table}").fetchone()[0]
            for table in tables
        ]


def faulty_lines(lines):
    for number, line in enumerate(lines, start=1):
        # A return before the line feed ends the line with it.
        line_alone = line.removesuffix(b"\r")
        if number == 1:
            line_alone = line.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r")
        if line_alone.strip(b" \t"):
            try:
                parse_record(line_alone, unknown_fields="refuse")
            except InputError:
                yield number


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(FILES, st.booleans())
@example([(None, b"\n")] * 3, False)
@example([(None, b"\r\n"), (None, b"\n")], True)
@example([(line, b"\n") for line in UNSOUND], False)
def test_a_batch_is_stored_whole_or_every_faulty_line_is_named(client, live, file, packed):
    # As the file is cut at line feeds.
    lines = [(sound_line(next(_numbers)) if line is None else line, end) for line, end in file]
    data = b"".join(line + end for line, end in lines)
    faulty = list(faulty_lines(line + end[:-1] for line, end in lines))
    before = count(live)
    headers = {"Content-Type": "application/jsonl"}
    if packed:
        data, headers["Content-Encoding"] = gzip.compress(data), "gzip"
    answer = client.post("/v1/batches", content=data, headers=headers)
    if answer.status_code == 202:
        assert not faulty
        batches, audits, _ = (now - then for now, then in zip(count(live), before, strict=True))
        assert (batches, audits) == (1, answer.json()["total"])
        assert audits == sum(bool(line.strip(b" \t\r")) for line, _ in lines)
    else:
        assert answer.status_code == 422
        assert count(live) == before
        told = answer.json(parse_constant=pytest.fail).get("errors", [])
        assert [fault["line"] for fault in told] == faulty
        assert all(len(fault["message"]) < 1000 for fault in told)


def damaged():
    good = gzip.compress(sound_line("x") + b"\n", mtime=0)
    yield good[:-1], 400
    yield good[:11], 400
    yield good + b"garbage", 400
    yield good + good[:12], 400
    yield good[:-8] + bytes(8), 400
    yield b"plain", 400
    yield gzip.compress(b""), 422
    yield b"", 422


@pytest.mark.parametrize(("data", "status"), [*damaged()])
def test_damaged_gzip_stores_nothing(client, live, data, status):
    before = count(live)
    headers = {"Content-Type": "application/jsonl", "Content-Encoding": "gzip"}
    answer = client.post("/v1/batches", content=data, headers=headers)
    assert answer.status_code == status
    assert count(live) == before
