"""Trails as JSON text that stays one line in every reader, and moves no terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from halldetect.trail import AuditResult

# Terminals take orders from some of these, and readers take some for line ends; inside JSON they
# stand only in strings.
_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def trail_json(result: AuditResult, *, indent: int | None = None) -> str:
    """Return the whole trail of an audit."""
    return result.model_dump_json(indent=indent).translate(_ESCAPES)


def trail_line(leading: Mapping[str, Any], result: AuditResult) -> bytes:
    """Return one line of JSON: the fields of `leading`, then those of the trail."""
    return f"{_object(leading)[:-1]},{trail_json(result)[1:]}\n".encode()


def object_line(fields: Mapping[str, Any]) -> bytes:
    """Return one line of JSON."""
    return f"{_object(fields)}\n".encode()


def _object(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
