"""What keeps the service going: the workers that live, and requests that may be repeated."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, CreatedAt, Id, Moment, one_of
from db.models.keys import ApiKey


class WorkerState(StrEnum):
    """What a worker says of itself."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"  # its models cannot be loaded: it lives, and takes no work
    STOPPING = "stopping"


class WorkerRow(Base):
    """A worker process, as it last reported."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    queues: Mapped[list[str]] = mapped_column(ARRAY(Text))
    pid: Mapped[int] = mapped_column(Integer)
    host: Mapped[str] = mapped_column(Text)
    state: Mapped[WorkerState] = mapped_column(one_of(WorkerState, "state"))
    error: Mapped[str | None] = mapped_column(Text)
    models: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    counters: Mapped[dict[str, float]] = mapped_column(JSONB, server_default=text("'{}'"))
    started_at: Mapped[CreatedAt]
    seen_at: Mapped[Moment] = mapped_column(server_default=func.now())


class IdempotencyKey(Base):
    """The first answer to a request that the caller may repeat."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        CheckConstraint("octet_length(request_sha256) = 32", name="sha256_length"),
        # Two owners may take the same key; nobody's are one owner's.
        Index("uq_idempotency_keys_api_key_id_key", "api_key_id", "key", unique=True),
        Index(
            "uq_idempotency_keys_key",
            "key",
            unique=True,
            postgresql_where=text("api_key_id IS NULL"),
        ),
    )

    id: Mapped[Id]
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey(ApiKey.id))
    key: Mapped[str] = mapped_column(Text)
    request_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[int] = mapped_column(SmallInteger)
    headers: Mapped[dict[str, str]] = mapped_column(JSONB)
    body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[CreatedAt] = mapped_column(index=True)
