"""SHA-256 of model files, computed once a process for each state of a file."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path


def sha256_of_file(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    status = path.stat()
    return _digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
