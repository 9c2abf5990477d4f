"""The tables of API keys: who may use the API, for what, and by which secrets they are known."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment

LONGEST_NAME = 200


class ApiKey(Base):
    """One key, whoever knows its secrets; it is revoked and never deleted."""

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint(f"length(name) BETWEEN 1 AND {LONGEST_NAME}", name="name_length"),
        CheckConstraint(
            "cardinality(scopes) > 0"
            " AND scopes <@ ARRAY['submit', 'read', 'review', 'admin']::text[]",
            name="scopes_known",
        ),
    )

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(Text)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[Moment | None]
    revoked_at: Mapped[Moment | None]


class ApiKeySecret(Base):
    """One secret of a key, of which only the digest is stored; rotation adds another.

    One that was replaced is accepted until `expires_at`, and kept to tell what became of it.
    """

    __tablename__ = "api_key_secrets"
    __table_args__ = (
        CheckConstraint("octet_length(sha256) = 32", name="sha256_length"),
        Index("ix_api_key_secrets_api_key_id_expires_at", "api_key_id", "expires_at"),
        # The newest alone has no end.
        Index(
            "uq_api_key_secrets_newest",
            "api_key_id",
            unique=True,
            postgresql_where=text("expires_at IS NULL"),
        ),
    )

    id: Mapped[Id]
    api_key_id: Mapped[int] = mapped_column(BigInteger, ForeignKey(ApiKey.id))
    sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Moment | None]
