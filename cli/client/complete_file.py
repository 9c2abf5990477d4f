"""A file that is there when it is complete, and not before."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from cli.text_input import unreadable
from halldetect.errors import InputError


class CompleteFile:
    """Written under another name, which becomes its own when the block ends without an error.

    What was there before stays until then. A device or a pipe is written to as it is.

    Parameters
    ----------
    path : Path
        Where to.

    Raises
    ------
    InputError
        It cannot be made or written; from every method.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        is_special = path.exists() and not path.is_file()
        self._draft = path if is_special else path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            self._file: BinaryIO = self._draft.open("wb", buffering=0)
        except OSError as error:
            raise unreadable(str(path), error) from None

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
        return InputError(f"{self._path}: cannot be written ({error.strerror or error})")
