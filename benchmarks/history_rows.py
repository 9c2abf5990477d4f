"""Rows in the forms that COPY reads fastest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray

COLUMNS = {
    "documents": "id, sha256, text, characters, created_at",
    "span_tables": "id, document_id, splitter, tokenizer, token_limit, starts, ends,"
    " chunk_granularity, chunk_offsets, chunk_spans, sentences, unreadable_sentences, tokens,"
    " unknown_tokens, windowed_chunks",
    "batches": "id, total, created_at",
    "audits": "id, batch_id, line, custom_id, document_id, policy_id, response, metadata,"
    " submitted_at, status, attempts, fencing_token, extraction_started_at, extracted_at,"
    " verification_started_at, finished_at, outcome, fedscore, label, deciding_claim, supported,"
    " contradicted, unsupported, error",
    "extractions": "audit_id, model_id, mode, claims, rejected, unaudited, generations",
    "verifications": "audit_id, model_id, span_table_id, preselected_spans, warnings",
    "claims": "id, audit_id, position, text, span_start, span_end, origin, part, has_name,"
    " has_number, has_date, verified_text, verdict, score, entailment, entailment_span,"
    " contradiction, contradiction_span, checked_spans",
    "scorings": "audit_id, policy_id, response_score, label, deciding_claim, claim_values,"
    " verdicts, created_at",
    "reviews": "claim_id, audit_id, claim_text, verdict, reviewer, reviewer_verdict, created_at",
    "probabilities": "month, audit_id, position, entailment, neutral, contradiction",
}
NULL = r"\N"
_BINARY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_BINARY_TRAILER = b"\xff\xff"
_FLOAT4 = 700  # its number among the server's types
_EPOCH = np.datetime64("2000-01-01")  # of dates in binary form


class Rows:
    """Rows of several tables, until they are sent."""

    def __init__(self) -> None:
        self._lines: defaultdict[str, list[str]] = defaultdict(list)
        self._probabilities: list[bytes] = []

    def add(self, table: str, *values: object) -> None:
        """Add a row; None is NULL, and texts hold no tab, line end or backslash."""
        self._lines[table].append("\t".join([NULL if v is None else str(v) for v in values]))

    def add_probabilities(self, rows: bytes) -> None:
        """Add rows of `probability_rows`."""
        self._probabilities.append(rows)

    def send(self, connection: psycopg.Connection) -> None:
        """Copy and commit all of them, and forget them."""
        with connection.cursor() as cursor:
            for table, lines in self._lines.items():
                with cursor.copy(f"COPY halldetect.{table} ({COLUMNS[table]}) FROM STDIN") as copy:
                    copy.write("\n".join(lines) + "\n")
            if self._probabilities:
                columns = COLUMNS["probabilities"]
                with cursor.copy(
                    f"COPY halldetect.probabilities ({columns}) FROM STDIN (FORMAT BINARY)"
                ) as copy:
                    copy.write(b"".join([_BINARY_HEADER, *self._probabilities, _BINARY_TRAILER]))
        connection.commit()
        self._lines.clear()
        self._probabilities.clear()


def array(values: Iterable[object]) -> str:
    """Write an array of numbers or plain words."""
    return f"{{{','.join(map(str, values))}}}"


def probability_rows(
    submitted: NDArray[np.datetime64],
    audit_ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    matrices: Sequence[NDArray[np.float32]],
) -> tuple[bytes, int]:
    """Lay rows of one length out in binary: all bytes, and how many one row has.

    Parameters
    ----------
    submitted : datetime64 array, shape (rows,)
        When the audits of the claims were submitted.
    audit_ids, positions : int64 array, shape (rows,)
        The claims.
    matrices : sequence of float32 array, shape (rows, spans)
        E, N and C; `without_nan` is for those with NaN.
    """
    spans = matrices[0].shape[1]
    cell = np.dtype([("size", ">i4"), ("value", ">f4")])
    probabilities = [
        ("size", ">i4"),
        ("dimensions", ">i4"),
        ("has_null", ">i4"),
        ("type", ">i4"),
        ("length", ">i4"),
        ("first", ">i4"),
        ("cells", cell, (spans,)),
    ]
    row = np.zeros(
        len(audit_ids),
        dtype=[
            ("fields", ">i2"),
            ("month_size", ">i4"),
            ("month", ">i4"),
            ("audit_size", ">i4"),
            ("audit", ">i8"),
            ("position_size", ">i4"),
            ("position", ">i4"),
            *((name, probabilities) for name in "enc"),
        ],
    )
    row["fields"] = 6
    months = submitted.astype("datetime64[M]").astype("datetime64[D]")
    row["month_size"], row["month"] = 4, (months - _EPOCH).astype(np.int64)
    row["audit_size"], row["audit"] = 8, audit_ids
    row["position_size"], row["position"] = 4, positions
    for name, matrix in zip("enc", matrices, strict=True):
        column = row[name]
        column["size"] = 20 + 8 * spans
        column["dimensions"], column["has_null"], column["type"] = 1, 0, _FLOAT4
        column["length"], column["first"] = spans, 1
        column["cells"]["size"] = 4
        column["cells"]["value"] = matrix
    return row.tobytes(), row.dtype.itemsize


def without_nan(rows: bytes, size: int, skipped: NDArray[np.bool_]) -> bytes:
    """Turn the NaN cells of one audit's rows into NULL, whose value takes no bytes.

    Parameters
    ----------
    skipped : bool array, shape (rows, spans)
        Where the NaN cells are.
    """
    spans = skipped.shape[1]
    head = size - 3 * (24 + 8 * spans)
    written = []
    for number, holes in enumerate(skipped):
        row = rows[number * size : (number + 1) * size]
        written.append(row[:head])
        for column in range(3):
            at = head + column * (24 + 8 * spans)
            cells = [
                b"\xff\xff\xff\xff" if hole else row[at + 24 + 8 * n : at + 32 + 8 * n]
                for n, hole in enumerate(holes)
            ]
            body = row[at + 4 : at + 8] + b"\0\0\0\1" + row[at + 12 : at + 24] + b"".join(cells)
            written += [len(body).to_bytes(4, "big"), body]
    return b"".join(written)
