"""Trails as JSON lines, in an answer of any length."""

from __future__ import annotations

from collections.abc import Iterator

from api.dependencies import Service
from db.audits import stream_results
from db.engine import translated
from db.trails import StoredAudit

_SENT_AT_ONCE = 1 << 18
# Some readers take these for line ends; inside JSON they stand only in strings.
_LINE_ENDS = {
    "\u0085".encode(): b"\\u0085",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def trail_json(audit: StoredAudit) -> bytes:
    """Return a trail as JSON that is one line for every reader."""
    text = audit.model_dump_json().encode()
    for character, escape in _LINE_ENDS.items():
        text = text.replace(character, escape)
    return text


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
