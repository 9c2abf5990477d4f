"""The table of API keys: who may use the API, and for what."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, LargeBinary, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment

LONGEST_NAME = 200


class ApiKey(Base):
    """One key. Only the digest of its secret is stored; a key is revoked and never deleted."""

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint(f"length(name) BETWEEN 1 AND {LONGEST_NAME}", name="name_length"),
        CheckConstraint("octet_length(sha256) = 32", name="sha256_length"),
        CheckConstraint(
            "cardinality(scopes) > 0"
            " AND scopes <@ ARRAY['submit', 'read', 'review', 'admin']::text[]",
            name="scopes_known",
        ),
    )

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(Text)
    sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[Moment | None]
    revoked_at: Mapped[Moment | None]
