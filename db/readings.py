"""How the source of an audit was read: what it takes to read it the same way again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import Document, SpanTable, Verification
from db.spans import SpanKey


@dataclass(frozen=True, slots=True)
class StoredReading:
    """The source of a verified audit.

    Parameters
    ----------
    source : str
        Its text.
    key : SpanKey
        What its spans came from, beside the text.
    preselected_spans : int or None
        How many spans were chosen for each claim; None when all were checked.
    """

    source: str
    key: SpanKey
    preselected_spans: int | None


def stored_reading(session: Session, audit_id: int) -> StoredReading | None:
    """Return how an audit's source was read; None when it was not, or there is no such audit."""
    row = session.execute(
        select(
            Document.text,
            SpanTable.splitter,
            SpanTable.tokenizer,
            SpanTable.token_limit,
            Verification.preselected_spans,
        )
        .select_from(Verification)
        .join(SpanTable, SpanTable.id == Verification.span_table_id)
        .join(Document, Document.id == SpanTable.document_id)
        .where(Verification.audit_id == audit_id)
    ).one_or_none()
    if row is None:
        return None
    text, splitter, tokenizer, token_limit, preselected_spans = row
    return StoredReading(text, SpanKey(splitter, tokenizer, token_limit), preselected_spans)
