"""Sources, each stored once: content-addressed by the SHA-256 of its UTF-8 bytes."""

from __future__ import annotations

import hashlib

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.models import Document


def document_digest(text: str) -> bytes:
    """Return the 32 bytes that a document is found by."""
    return hashlib.sha256(text.encode()).digest()


def find_or_store_document(session: Session, text: str) -> int:
    """Return the id of the document with this text, stored if it was not there.

    Of many clients that bring one text at once, one stores it and the others wait for that one;
    the row is locked, so that it is still there when an audit refers to it.
    """
    digest = document_digest(text)
    stored = (
        insert(Document)
        .values(sha256=digest, text=text, characters=len(text))
        .on_conflict_do_nothing()
    )
    found = select(Document.id).where(Document.sha256 == digest).with_for_update(key_share=True)
    while True:
        session.execute(stored)
        document_id = session.scalar(found)
        if document_id is not None:
            return document_id
        # It was deleted between the two statements: store it after all.
