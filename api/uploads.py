"""Uploads of any size on their way into a temporary file, bounded and unpacked as they arrive."""

from __future__ import annotations

import errno
import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from api.problems import Kind, Problem
from api.upload_room import UploadRoom

_IN_MEMORY = 1 << 20  # smaller uploads never reach the disk
_WRITTEN_AT_ONCE = 1 << 18
_UNPACKED_AT_ONCE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS
_FULL = (errno.ENOSPC, errno.EDQUOT)
_UPLOAD_SETTING = "HALLDETECT_MAX_UPLOAD_BYTES"


class Spool:
    """A temporary file for one upload, and the digest of what is in it.

    Parameters
    ----------
    max_bytes : int
        Most bytes, counted after unpacking.
    packed : bool
        Whether the upload is gzip.
    room : UploadRoom
        What it shares with other uploads, until it is closed.
    """

    def __init__(self, *, max_bytes: int, packed: bool, room: UploadRoom) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115, closed by __exit__
        self._left = max_bytes
        self._max_bytes = max_bytes
        self._digest = hashlib.sha256()
        self._gunzip = Gunzip() if packed else None
        self._room = room
        self._taken = 0  # of the room

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with suppress(OSError):  # what a full disk did not take is not needed any more
                self._file.close()
        finally:
            self._room.give_back(self._taken)

    @property
    def sha256(self) -> bytes:
        """Digest of the unpacked content."""
        return self._digest.digest()

    def write(self, data: bytes) -> None:
        """Take in what arrived.

        Raises
        ------
        Problem
            When the upload is too large or damaged, the disk is full, or other uploads take all the
            room.
        """
        for piece in self._gunzip.feed(data) if self._gunzip else [data]:
            self._left -= len(piece)
            if self._left < 0:
                raise Problem(
                    413,
                    Kind.TOO_LARGE,
                    f"the upload has more than {self._max_bytes:,} bytes, counted after unpacking "
                    f"({_UPLOAD_SETTING})",
                )
            self._room.take(len(piece))
            self._taken += len(piece)
            self._digest.update(piece)
            with _room_on_disk():
                self._file.write(piece)

    def finish(self) -> None:
        """Note that all has arrived.

        Raises
        ------
        Problem
            When a packed upload ends too early, or the disk is full.
        """
        if self._gunzip:
            self._gunzip.finish()
        with _room_on_disk():
            self._file.seek(0)  # writes what is still in memory

    def lines(self, longest: int) -> Iterator[bytes]:
        """Yield the physical lines with their ends; of a longer one only what shows that it is.

        Parameters
        ----------
        longest : int
            Bytes of the longest line that can be of use.
        """
        # A byte order mark and a line end may come on top.
        limit = longest + len(b"\xef\xbb\xbf\r\n") + 1
        while line := self._file.readline(limit):
            yield line
            rest = line
            while len(rest) == limit and not rest.endswith(b"\n"):
                rest = self._file.readline(limit)


class Gunzip:
    """Unpacks gzip as it arrives, a bounded piece at a time."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` unpacks to.

        Raises
        ------
        Problem
            When it is not gzip.
        """
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)  # gzip files may be put end to end
            self._begun = True
            try:
                piece = self._member.decompress(data, _UNPACKED_AT_ONCE)
            except zlib.error:
                raise _damaged("the upload is not valid gzip") from None
            if piece:
                yield piece
            data = self._member.unconsumed_tail or self._member.unused_data

    def finish(self) -> None:
        """Note that all has arrived.

        Raises
        ------
        Problem
            When there must be more.
        """
        if self._begun and not self._member.eof:
            raise _damaged("the gzip of the upload ends too early")


@contextmanager
def _room_on_disk() -> Iterator[None]:
    """Tell a disk that is full, or a quota that is used up, as what it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise Problem(
            507, Kind.UNAVAILABLE, "the service has no room left for uploads: try again later"
        ) from error


def _damaged(what: str) -> Problem:
    return Problem(400, Kind.DAMAGED_UPLOAD, f"{what}: nothing was stored, send it again")


async def receive(request: Request, spool: Spool) -> None:
    """Move the body of a request into a spool, in threads, so that others are served meanwhile.

    Raises
    ------
    Problem
        See `Spool.write` and `Spool.finish`.
    ClientDisconnect
        When the client goes away before the end.
    """
    waiting = bytearray()
    async for data in request.stream():
        waiting += data
        if len(waiting) >= _WRITTEN_AT_ONCE:
            await run_in_threadpool(spool.write, bytes(waiting))
            waiting.clear()
    await run_in_threadpool(spool.write, bytes(waiting))
    await run_in_threadpool(spool.finish)
