"""Scorings: what audits come to under other policies, stored in bulk and never changed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import isnan

import numpy as np
from psycopg.errors import ForeignKeyViolation
from sqlalchemy import text
from sqlalchemy.orm import Session

from db.driver import driver_connection
from halldetect.errors import HallDetectError
from halldetect.scoring.score import BatchScore
from halldetect.scoring.segments import FloatArray, IntArray
from halldetect.scoring.verdict import Label, Verdict, is_hallucinated

_STAGING_TABLE = text(
    """
    CREATE TEMPORARY TABLE staged_scorings (
        audit_id bigint NOT NULL, response_score float8, label text, deciding_claim integer,
        claim_values float8[] NOT NULL, verdicts text[] NOT NULL
    ) ON COMMIT DROP
    """
)
_COPY = "COPY staged_scorings FROM STDIN (FORMAT BINARY)"
# In the order of the audits, so that two rescorings never wait for each other in a circle.
_STORE = """
    INSERT INTO halldetect.scorings (audit_id, policy_id, response_score, label, deciding_claim,
        claim_values, verdicts)
    SELECT audit_id, %s, response_score, label, deciding_claim, claim_values, verdicts
    FROM staged_scorings ORDER BY audit_id
    ON CONFLICT DO NOTHING
"""

# COPY's binary format: a signature, flags, and the length of an extension; rows; an end. A row is
# the number of its fields, then each field after its length, which is -1 for NULL.
_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
_NULL = struct.pack(">i", -1)
_AUDIT = struct.Struct(">hiq")  # six fields, the first of eight bytes
_SCORE = struct.Struct(">id")
_NUMBER = struct.Struct(">ii")
# An array: dimensions, nulls, type of the elements; size and lower bound of the one dimension
# unless it is empty; each element after its length.
_ARRAY = struct.Struct(">iiiiii")
_EMPTY_ARRAY = struct.Struct(">iiii")
_FLOAT8, _TEXT = 701, 25  # numbers of the types
_FLOAT8_ELEMENT = np.dtype([("length", ">i4"), ("value", ">f8")])


def _text_field(content: str) -> bytes:
    encoded = content.encode()
    return struct.pack(">i", len(encoded)) + encoded


_LABELS = {False: _text_field(Label.FAITHFUL.value), True: _text_field(Label.HALLUCINATED.value)}
_VERDICTS = {verdict: _text_field(verdict.value) for verdict in Verdict}


class AuditDeleted(HallDetectError):
    """An audit is gone by the time its scoring is stored: nothing was written."""


def store_scorings(session: Session, policy_id: int, audit_ids: IntArray, score: BatchScore) -> int:
    """Store what audits come to under a policy; return how many did not have that score yet.

    Parameters
    ----------
    session : Session
        May do so once a transaction.
    policy_id : int
        The policy.
    audit_ids : int64 array
        The audits of `score`, ascending.
    score : BatchScore
        Under that policy.

    Raises
    ------
    AuditDeleted
        An audit was deleted after its matrix was read; roll back.
    """
    session.execute(_STAGING_TABLE)
    with driver_connection(session).cursor() as cursor:
        with cursor.copy(_COPY) as copy:
            copy.write(b"".join(_rows(audit_ids, score)))
        try:
            cursor.execute(_STORE, [policy_id])
        except ForeignKeyViolation as error:
            raise AuditDeleted("an audit was deleted while it was scored") from error
        return cursor.rowcount


def _rows(audit_ids: IntArray, score: BatchScore) -> Iterator[bytes]:
    """Yield what COPY reads, in pieces."""
    offsets = score.claim_offsets.tolist()
    values, verdicts = _encoded_values(score.values), _encoded_verdicts(score)
    judgements = _encoded_judgements(score)
    size = _FLOAT8_ELEMENT.itemsize
    yield _HEAD
    for number, audit_id in enumerate(audit_ids.tolist()):
        first, last = offsets[number], offsets[number + 1]
        yield _AUDIT.pack(6, 8, audit_id)
        yield judgements[number]
        yield _array(_FLOAT8, last - first, values[size * first : size * last])
        yield _array(_TEXT, last - first, b"".join(verdicts[first:last]))
    yield _END


def _encoded_judgements(score: BatchScore) -> list[bytes]:
    """Return score, label and deciding claim of each audit; one without claims has none of them."""
    labels = is_hallucinated(score.response_scores, score.policy).tolist()
    deciding = [_NULL] * len(score)
    if score.deciding is not None:
        deciding = [_NUMBER.pack(4, claim) for claim in score.deciding.tolist()]
    return [
        3 * _NULL if isnan(value) else _SCORE.pack(8, value) + _LABELS[is_flagged] + claim
        for value, is_flagged, claim in zip(
            score.response_scores.tolist(), labels, deciding, strict=True
        )
    ]


def _encoded_values(values: FloatArray) -> bytes:
    elements = np.empty(len(values), dtype=_FLOAT8_ELEMENT)
    elements["length"] = 8
    elements["value"] = values
    return elements.tobytes()


def _encoded_verdicts(score: BatchScore) -> list[bytes]:
    names = np.full(len(score.values), Verdict.UNSUPPORTED, dtype=object)
    names[score.supported] = Verdict.SUPPORTED
    names[score.contradicted] = Verdict.CONTRADICTED
    return [_VERDICTS[name] for name in names]


def _array(element_type: int, size: int, elements: bytes) -> bytes:
    if size == 0:
        return _EMPTY_ARRAY.pack(_EMPTY_ARRAY.size - 4, 0, 0, element_type)
    length = _ARRAY.size - 4 + len(elements)
    return _ARRAY.pack(length, 1, 0, element_type, size, 1) + elements
