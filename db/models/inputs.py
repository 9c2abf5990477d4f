"""What audits are made of: documents, policies, and the models that compute."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, one_of


class Document(Base):
    """A source, stored once however often it is submitted."""

    __tablename__ = "documents"
    __table_args__ = (
        CheckConstraint("octet_length(sha256) = 32", name="sha256_length"),
        CheckConstraint("characters > 0", name="not_empty"),
    )

    id: Mapped[Id]
    sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    text: Mapped[str] = mapped_column(Text)
    characters: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[CreatedAt]


class PolicyVersion(Base):
    """One immutable version of a named policy."""

    __tablename__ = "policies"
    __table_args__ = (
        UniqueConstraint("name", "version"),
        CheckConstraint("version ~ '^[0-9a-f]{16}$'", name="version_form"),
    )

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    rules: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]


class ModelKind(StrEnum):
    """What a model does."""

    EXTRACTOR = "extractor"
    NLI = "nli"


class Model(Base):
    """What computed: one row for each distinct provenance."""

    __tablename__ = "models"
    __table_args__ = (CheckConstraint("octet_length(sha256) = 32", name="sha256_length"),)

    id: Mapped[Id]
    sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)  # of kind and provenance
    kind: Mapped[ModelKind] = mapped_column(one_of(ModelKind, "kind"))
    name: Mapped[str] = mapped_column(Text)
    backend: Mapped[str] = mapped_column(Text)
    revision: Mapped[str] = mapped_column(Text)
    dtype: Mapped[str] = mapped_column(Text)
    device: Mapped[str] = mapped_column(Text)
    provenance: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
