"""What can be exported; apart from how, which a command line need not load to name it."""

from __future__ import annotations

from enum import StrEnum


class Exported(StrEnum):
    """What a row of an export is."""

    AUDITS = "audits"
    CLAIMS = "claims"
    PROBABILITIES = "probabilities"
