"""Cursors: where a list goes on. Opaque to clients, and good for one selection only."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

from api.problems import Kind, Problem

LARGEST_ID = 2**63 - 1  # what Postgres's bigint holds
_FORM = re.compile(r"([1-9][0-9]{0,18})\.([0-9a-f]{16})", re.ASCII)


def make_cursor(last_id: int, selection: dict[str, Any]) -> str:
    """Return the cursor of the page after the one that ends with `last_id`.

    Parameters
    ----------
    last_id : int
        Unique, so that no two rows share a place.
    selection : dict
        The filters of the list, as JSON values.
    """
    text = f"{last_id}.{_digest(last_id, selection)}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, selection: dict[str, Any]) -> int | None:
    """Return the id that a page starts before; without a cursor None, for the first page.

    Raises
    ------
    Problem
        When the cursor was not made by `make_cursor` for this selection.
    """
    if cursor is None:
        return None
    found = _FORM.fullmatch(_decoded(cursor))
    if found is None or int(found[1]) > LARGEST_ID:
        raise _invalid("the cursor is damaged: send next_cursor exactly as it came")
    last_id = int(found[1])
    if make_cursor(last_id, selection) != cursor:
        raise _invalid("the cursor is of other filters, or changed: repeat those it came with")
    return last_id


def _decoded(cursor: str) -> str:
    padding = "=" * (-len(cursor) % 4)
    try:
        return base64.urlsafe_b64decode(cursor + padding).decode("ascii")
    except ValueError:  # also for characters outside the alphabet
        return ""


def _digest(last_id: int, selection: dict[str, Any]) -> str:
    text = json.dumps([last_id, selection], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _invalid(detail: str) -> Problem:
    return Problem(400, Kind.INVALID_CURSOR, detail)
