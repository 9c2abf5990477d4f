from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import uploads
from api.problems import Problem
from api.upload_room import UploadRoom
from api.uploads import Spool
from halldetect.record import jsonl_lines


@contextmanager
def spooled(*chunks, max_bytes=1 << 20, packed=False, room=None):
    room = room or UploadRoom(1 << 30)
    with Spool(max_bytes=max_bytes, packed=packed, room=room) as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.finish()
        yield spool


def refusal(*chunks, **options):
    with pytest.raises(Problem) as caught, spooled(*chunks, **options):
        pass
    return caught.value


def content(spool):
    return b"".join(spool.lines(1 << 20))


def cut(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(st.binary(max_size=300), st.integers(1, 50))
def test_what_was_written_is_read_back(data, size):
    with spooled(*cut(data, size)) as spool:
        assert content(spool) == data
        assert spool.sha256 == hashlib.sha256(data).digest()


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3), st.integers(1, 40))
def test_gzip_is_unpacked_however_it_arrives(parts, size):
    packed = b"".join(map(gzip.compress, parts))
    with spooled(*cut(packed, size), packed=True) as spool:
        assert content(spool) == b"".join(parts)
        assert spool.sha256 == hashlib.sha256(b"".join(parts)).digest()


@pytest.mark.parametrize("packed", [False, True])
def test_the_limit_counts_unpacked_bytes_and_is_named(packed):
    data = b"x" * 1000
    sent = gzip.compress(data) if packed else data
    with spooled(sent, max_bytes=1000, packed=packed) as spool:
        assert content(spool) == data
    problem = refusal(sent, max_bytes=999, packed=packed)
    assert problem.status == 413
    assert "more than 999 bytes" in problem.detail
    assert "HALLDETECT_MAX_UPLOAD_BYTES" in problem.detail


def test_a_small_body_that_unpacks_to_gigabytes_is_stopped_on_the_way():
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b"\0" * (1 << 20)
    bomb = b"".join(packer.compress(piece) for _ in range(512)) + packer.flush()
    tracemalloc.start()
    problem = refusal(bomb, max_bytes=10_000_000, packed=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.status == 413
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"x" * 1000)[:-1], "ends too early"),
        (gzip.compress(b"x" * 1000)[:12], "ends too early"),
        (gzip.compress(b"x") + b"\x1f", "ends too early"),
        (b"plain text", "not valid gzip"),
        (gzip.compress(b"x") + b"tail", "not valid gzip"),
        (gzip.compress(b"x")[:-8] + bytes(8), "not valid gzip"),  # another checksum
        (zlib.compress(b"x"), "not valid gzip"),
    ],
)
def test_damaged_gzip_is_refused(data, message):
    problem = refusal(data, packed=True)
    assert problem.status == 400
    assert message in problem.detail


def test_a_line_beyond_the_longest_is_cut_and_the_next_one_is_whole():
    long = b"x" * 5_000
    with spooled(b"\xef\xbb\xbfab\r\n", long + b"\n", b"cd\n", long) as spool:
        lines = list(jsonl_lines(spool.lines(10)))
    assert [number for number, _ in lines] == [1, 2, 3, 4]
    assert lines[0][1] == b"ab"
    assert lines[2][1] == b"cd"
    for _, line in (lines[1], lines[3]):
        assert 10 < len(line) < 20


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_line_of_the_longest_length_is_whole(ending, mark):
    with spooled(mark + b"x" * 10 + ending) as spool:
        assert list(jsonl_lines(spool.lines(10))) == [(1, b"x" * 10)]


@pytest.mark.parametrize("packed", [False, True])
def test_uploads_share_their_room_and_give_it_back_however_they_end(packed):
    room = UploadRoom(1000)
    data = b"x" * 600
    sent = gzip.compress(data) if packed else data
    for _ in range(3):
        with spooled(sent, packed=packed, room=room) as first:
            problem = refusal(sent, packed=packed, room=room)
            assert problem.status == 503
            assert problem.headers == {"Retry-After": "30"}
            assert "HALLDETECT_MAX_SPOOLED_BYTES" in problem.detail
            with spooled(b"y" * 400, room=room):
                pass
            assert content(first) == data
        assert refusal(data, max_bytes=599, room=room).status == 413
        assert refusal(b"no gzip", packed=True, room=room).status == 400
    with spooled(b"z" * 1000, room=room):
        pass


def test_a_refused_piece_takes_no_room():
    room = UploadRoom(1000)
    with spooled(b"x" * 600, room=room), Spool(max_bytes=5000, packed=False, room=room) as second:
        with pytest.raises(Problem):
            second.write(b"y" * 401)
        with spooled(b"z" * 400, room=room):
            pass


def test_room_is_counted_right_from_many_threads():
    room = UploadRoom(100 * 50)

    def use(_):
        for _ in range(200):
            room.take(50)
            room.give_back(50)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    room.take(100 * 50)


class FullDisk(io.RawIOBase):
    """A disk that takes so many bytes and no more."""

    def __init__(self, left, number):
        self._left = left
        self._number = number

    def readable(self):
        return True

    def seekable(self):
        return True

    def writable(self):
        return True

    def seek(self, *_):
        return 0

    def write(self, data):
        taken = min(len(data), self._left)
        if not taken:
            raise OSError(self._number, os.strerror(self._number))
        self._left -= taken
        return taken


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("missing", [1, 5_000, 300_000])
def test_a_full_disk_is_told_as_such_and_gives_back_the_room(monkeypatch, number, missing):
    """Whether it shows at once, or when what was kept in memory is written at the end."""
    chunks = [b"x" * (1 << 20), *[b"y" * 1_000] * 300]
    size = sum(map(len, chunks))
    monkeypatch.setattr(
        uploads.tempfile,
        "TemporaryFile",
        lambda **_: io.BufferedRandom(FullDisk(size - missing, number)),
    )
    room = UploadRoom(size)
    problem = refusal(*chunks, max_bytes=size, room=room)
    assert problem.status == 507
    assert "no room" in problem.detail
    room.take(size)


def test_another_fault_of_the_disk_gives_back_the_room_too(monkeypatch):
    monkeypatch.setattr(
        uploads.tempfile,
        "TemporaryFile",
        lambda **_: io.BufferedRandom(FullDisk(1 << 20, errno.EIO)),
    )
    room = UploadRoom(2 << 20)
    with (
        pytest.raises(OSError, match="Input/output"),
        spooled(b"x" * (1 << 20), b"y", max_bytes=2 << 20, room=room),
    ):
        pass
    room.take(2 << 20)
