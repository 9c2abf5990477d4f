"""Trails as JSON lines, in an answer of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator

from api.dependencies import Service
from db.audits import stream_results
from db.engine import translated
from db.trails import StoredAudit

_SENT_AT_ONCE = 1 << 18
# U+007F to U+009F, U+2028 and U+2029 in UTF-8: terminals take orders from some of them, and readers
# take some for line ends. Inside JSON they stand only in strings.
_ODD = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")


def trail_json(audit: StoredAudit) -> bytes:
    """Return a trail as JSON that is one line for every reader, and moves no terminal."""
    return _ODD.sub(_escape, audit.model_dump_json().encode())


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def result_lines(service: Service, batch_id: int, *, with_matrix: bool) -> Iterator[bytes]:
    """Yield the results of a batch, a few lines at a time.

    No connection is held while the client reads, however slowly it does.
    """
    with service.sessions() as session:
        results = stream_results(session, batch_id, with_matrix=with_matrix)
        waiting = bytearray()
        while True:
            with translated():
                audit = next(results, None)
            if audit is not None:
                waiting += trail_json(audit) + b"\n"
            if audit is None or len(waiting) >= _SENT_AT_ONCE:
                session.rollback()
                yield bytes(waiting)
                waiting.clear()
            if audit is None:
                return
