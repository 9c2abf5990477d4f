"""The reader of JSON lines against a simple model of it, over bytes of all kinds."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import zlib

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from api.problems import Problem
from api.upload_room import UploadRoom
from api.uploads import Spool
from halldetect.errors import InputError
from halldetect.record import Record, RecordError, jsonl_lines, parse_record

LONGEST = 200
MOST = 20_000
BOM = b"\xef\xbb\xbf"
DEEP = st.integers(1, 3000).map(lambda depth: b"[" * depth + b"]" * depth)
NUMBERS = st.sampled_from(
    [
        b"9" * 5_000,
        b"1e999",
        b"-1e999",
        b"NaN",
        b"-Infinity",
        b"Infinity",
        b"1e-999",
        b"-0",
        b"0123",
    ]
)
KEYS = st.sampled_from(
    ["source", "response", "context", "question", "custom_id", "id", "metadata", "policy", "x", ""]
)
STRINGS = st.sampled_from(
    ['""', '"A."', r'"\u0000"', r'"\ud800"', r'"\ud83c\udf75"', '"\x00"', '"\u2028"', '"\ufeff"']
).map(lambda text: text.encode("utf-8"))
HALVES = st.sampled_from([b'"\xed\xa0\x80"', b'"\xff"', b'"\xc3"', b'"\xf0\x9f\x8d"'])
VALUES = st.one_of(STRINGS, HALVES, NUMBERS, DEEP, st.sampled_from([b"null", b"true", b"{}", b"7"]))
OBJECTS = st.lists(st.tuples(KEYS, VALUES), max_size=6).map(
    lambda pairs: b"{" + b",".join(json.dumps(k).encode() + b":" + v for k, v in pairs) + b"}"
)
SOUND = b'{"source": "The mill closed.", "response": "It closed."}'


@st.composite
def mutated(draw):
    """Draw a good line of which some bytes are gone, doubled or others."""
    line = bytearray(SOUND)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(line)))
        piece = draw(st.binary(max_size=3) | st.sampled_from([b'"', b"\\", b"{", b"\x00", BOM]))
        line[at : at + draw(st.integers(0, 3))] = piece
    return bytes(line)


LINES = st.one_of(st.binary(max_size=60), mutated(), OBJECTS, st.just(SOUND))
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x85", "\u2028".encode()])
FILES = st.builds(
    lambda mark, parts, last: mark + b"".join(line + end for line, end in parts) + last,
    st.sampled_from([b"", BOM, BOM + BOM]),
    st.lists(st.tuples(LINES, ENDS), max_size=8),
    LINES | st.just(b""),
)


def simple_lines(data):
    """Say in another way what the lines of a file are."""
    without_mark = data[3:] if data[:3] == BOM else data
    *ended, last = re.split(rb"\r?\n", without_mark)
    # One return at the very end counts as a line end too.
    for number, line in enumerate([*ended, re.sub(rb"\r\Z", b"", last)], start=1):
        if re.search(rb"[^ \t]", line):
            yield number, line


def spooled_lines(chunks, *, packed=False, longest=MOST):
    with Spool(max_bytes=MOST * 100, packed=packed, room=UploadRoom(1 << 40)) as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.finish()
        return list(jsonl_lines(spool.lines(longest)))


@st.composite
def cut(draw, files=FILES):
    """Draw a file and the pieces that it arrives in."""
    data = draw(files)
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    borders = [0, *places, len(data)]
    return data, [data[begin:end] for begin, end in itertools.pairwise(borders)]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(cut())
@example((b"a\r\r\nb\r", [b"a\r", b"\r\nb\r"]))
@example((b"\r\n\r\n{}", [b"\r", b"\n\r\n{}"]))
def test_lines_and_their_numbers_are_those_of_a_simple_model_wherever_chunks_end(file):
    data, chunks = file
    assert spooled_lines(chunks) == list(simple_lines(data))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cut(FILES.map(gzip.compress)), st.booleans())
def test_packed_or_in_two_members_the_lines_are_the_same(file, twice):
    data, chunks = file
    plain = gzip.decompress(data)
    if twice:
        chunks, plain = [*chunks, *chunks], plain * 2
    assert spooled_lines(chunks, packed=True) == list(simple_lines(plain))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(FILES)
def test_lines_beyond_the_longest_are_told_and_move_no_other(data):
    expected = list(simple_lines(data))
    found = spooled_lines([data], longest=LONGEST)
    assert [number for number, _ in found] == [number for number, _ in expected] or any(
        len(line) > LONGEST for _, line in expected
    )
    by_number = dict(found)
    for number, line in expected:
        if len(line) <= LONGEST:
            assert by_number[number] == line
        elif number in by_number:
            assert len(by_number[number]) > LONGEST


@settings(derandomize=True, deadline=None, max_examples=400)
@given(LINES, st.sampled_from(["ignore", "refuse"]))
def test_a_line_is_a_record_or_one_error_that_says_where(line, unknown_fields):
    try:
        record = parse_record(line, unknown_fields=unknown_fields)
    except InputError as error:
        message = str(error)
        message.encode("utf-8")
        assert message
        assert len(message) < 1000
        column = error.column if isinstance(error, RecordError) else None
        if "not UTF-8" in message or "column" in message:
            assert column is not None
        if column is not None:
            assert 1 <= column <= len(line.decode("utf-8", "replace")) + 1
    else:
        # What was taken can be stored, sent on and read again.
        again = Record.model_validate_json(record.model_dump_json())
        assert again == record
        assert "\0" not in record.model_dump_json()
        assert json.loads(line)["source"] == record.source


@settings(
    derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
@given(FILES, st.data())
def test_damaged_gzip_is_refused_or_whole(data, draw):
    packed = bytearray(gzip.compress(data, mtime=0))
    change = draw.draw(st.sampled_from(["cut", "flip", "tail"]))
    at = draw.draw(st.integers(0, len(packed) - 1))
    if change == "cut":
        packed = packed[:at]
    elif change == "flip":
        packed[at] ^= draw.draw(st.integers(1, 255))
    else:
        packed += draw.draw(st.binary(min_size=1, max_size=20))
    try:
        lines = spooled_lines([bytes(packed)], packed=True)
    except Problem as problem:
        status = problem.status
    else:
        status = 400
        # Some header bytes (time, system) say nothing; no data was lost or made up.
        assert lines in (list(simple_lines(data)), [])
        assert lines or not packed or not list(simple_lines(data))
    assert status == 400


@pytest.mark.parametrize("members", [1, 2, 50])
def test_bombs_are_stopped_at_the_limit_however_they_are_packed(members):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    with pytest.raises(Problem) as caught:
        spooled_lines([bomb] * members, packed=True)
    assert caught.value.status == 413
