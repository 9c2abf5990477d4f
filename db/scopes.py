"""What API keys may be used for; apart from the tables, for command lines that only name it."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """What a key may be used for."""

    SUBMIT = "submit"
    READ = "read"
    REVIEW = "review"
    ADMIN = "admin"  # all of it, and on what belongs to others too
