"""From the bytes of a request to records that can be stored."""

from __future__ import annotations

from halldetect.errors import LimitError
from halldetect.record import Record, UnknownFields, parse_record
from halldetect.settings import Settings


def read_record(line: bytes, settings: Settings, unknown_fields: UnknownFields) -> Record:
    """Read one record.

    Raises
    ------
    InputError
        Naming the field, byte or column at fault.
    LimitError
        Naming the limit that a text exceeds.
    """
    record = parse_record(line, unknown_fields=unknown_fields)
    for field, text in (("source", record.source), ("response", record.response)):
        if len(text) > settings.max_characters:
            raise LimitError(
                f"field {field}: has {len(text):,} characters; the limit is "
                f"{settings.max_characters:,} (HALLDETECT_MAX_CHARACTERS)"
            )
    return record
