"""One stack a home folder: a lock that the system gives back however its holder ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.stack.errors import StackError

# Readers hold the lock for an instant when they ask whether somebody has it.
_TRIES = 10
_SECONDS_BETWEEN_TRIES = 0.05


@contextmanager
def exclusive_lock(file: Path) -> Iterator[bool]:
    """Hold the lock on `file`; yields False if another process has it.

    Raises
    ------
    StackError
        The file belongs to another user.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError:
        raise StackError(
            f"{file} belongs to another user: choose another folder with --home"
        ) from None
    try:
        yield any(_tries(descriptor))
    finally:
        os.close(descriptor)


def is_locked(file: Path) -> bool:
    """Tell whether a process holds the lock on `file`.

    Raises
    ------
    PermissionError
        The file belongs to another user.
    """
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _tries(descriptor: int) -> Iterator[bool]:
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            time.sleep(_SECONDS_BETWEEN_TRIES)
        else:
            yield True
