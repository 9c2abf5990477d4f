"""One file on its way to the service: compressed as it goes, and sent again if it must be."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cli.text_input import STANDARD_INPUT, display_name, unreadable

_BLOCK = 256 * 1024
_GZIP_WINDOW = 31  # of zlib: the largest window, in the gzip format
_LEVEL = 3  # texts shrink to a third, several times faster than a network takes them


class Upload:
    """The bytes of a batch, which can be sent more than once.

    Parameters
    ----------
    name : str
        What messages call it.
    file : binary file
        Open, and able to go back to its start.
    """

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self._file = file
        self.size = file.seek(0, os.SEEK_END)

    def compressed(self, note: Callable[[int], None]) -> Iterator[bytes]:
        """Yield all of it from the start, compressed by gzip; always the same bytes.

        Parameters
        ----------
        note : callable
            Told how many bytes of the file have been read.

        Raises
        ------
        InputError
            The file cannot be read to its end.
        """
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP_WINDOW)
        read = 0
        for block in self._blocks():
            read += len(block)
            note(read)
            if piece := packer.compress(block):
                yield piece
        yield packer.flush()

    def _blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while True:
            try:
                block = self._file.read(_BLOCK)
            except OSError as error:
                raise unreadable(self.name, error) from None
            if not block:
                return
            yield block


@contextmanager
def open_upload(argument: str) -> Iterator[Upload]:
    """Open a file to upload; what can be read only once is spooled to disk first.

    Parameters
    ----------
    argument : str
        Path; ``-`` for standard input.

    Raises
    ------
    InputError
        Naming the file that cannot be read.
    """
    name = display_name(argument)
    try:
        file = _opened(argument)
    except OSError as error:
        raise unreadable(name, error) from None
    with file:
        yield Upload(name, file)


def _opened(argument: str) -> BinaryIO:
    if argument == STANDARD_INPUT:
        return _spooled(sys.stdin.buffer)
    file = Path(argument).open("rb")  # noqa: SIM115  # the caller closes it
    if file.seekable():
        return file
    with file:
        return _spooled(file)


def _spooled(pipe: BinaryIO) -> BinaryIO:
    """Return a file without a name that holds all that comes out of a pipe."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        shutil.copyfileobj(pipe, copy, _BLOCK)
    except BaseException:
        copy.close()
        raise
    return copy
