"""Points in time for people to read, written in one way."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_text(moment: datetime) -> str:
    """Return a point in time to the minute, in UTC: ``2026-03-01 14:05 UTC``."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
