"""Random passwords of the embedded servers, kept in files that only their owner reads.

Every user of the machine reaches loopback, so a server without a password would be theirs too.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def kept_password(file: Path) -> str:
    """Return the password in `file`; the first call makes one up and keeps it there."""
    if not file.exists():
        write_private(file, secrets.token_urlsafe(24))
    return file.read_text(encoding="ascii")


def write_private(file: Path, text: str) -> None:
    """Write `text` to `file` whole or not at all, readable by its owner alone from the start."""
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    draft.replace(file)
