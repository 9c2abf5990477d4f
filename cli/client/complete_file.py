"""A file that is there when it is complete, and not before."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from halldetect.errors import InputError


class CompleteFile:
    """Written under another name, which becomes its own when the block ends without an error.

    What was there before stays until then. A symbolic link stays one: the file that it leads to
    is written. A device or a pipe is written to as it is.

    Parameters
    ----------
    out : str
        Where to.

    Raises
    ------
    InputError
        It cannot be made or written; from every method.
    """

    def __init__(self, out: str) -> None:
        if not out:
            raise InputError("the name of the file to write is empty: give one, or - for output")
        self._name = out
        path = Path(out)
        if path.exists() and not path.is_file():
            self._path = self._draft = path
        else:
            self._path = Path(os.path.realpath(path))
            if self._path.is_symlink():
                raise InputError(f"{out}: is a symbolic link that leads back to itself")
            self._draft = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            self._file: BinaryIO = self._draft.open("wb", buffering=0)
        except FileNotFoundError:
            raise InputError(f"{out}: there is no folder {self._path.parent}") from None
        except IsADirectoryError:
            raise InputError(f"{out}: is a directory, not a file") from None
        except OSError as error:
            raise self._unwritable(error) from None

    def write(self, content: bytes) -> None:
        """Add to what is there."""
        remaining = memoryview(content)
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._unwritable(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if self._draft == self._path:
            return
        if kind is not None:
            self._draft.unlink(missing_ok=True)
            return
        try:
            self._draft.replace(self._path)
        except OSError as fault:
            raise self._unwritable(fault) from None

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"{self._name}: cannot be written ({error.strerror or error})")
