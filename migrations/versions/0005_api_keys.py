"""API keys, and which key batches, audits, rescorings, reviews and repeated requests belong to.

Revision ID: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_OWNED = ("batches", "audits", "rescorings", "reviews", "idempotency_keys")
_TABLE = """
CREATE TABLE halldetect.api_keys (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL,
    sha256 BYTEA NOT NULL,
    scopes TEXT[] NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    last_used_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_api_keys PRIMARY KEY (id),
    CONSTRAINT uq_api_keys_sha256 UNIQUE (sha256),
    CONSTRAINT ck_api_keys_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT ck_api_keys_sha256_length CHECK (octet_length(sha256) = 32),
    CONSTRAINT ck_api_keys_scopes_known CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['submit', 'read', 'review', 'admin']::text[]
    )
)
"""
# What one owner's page of a list is read from.
_INDEXES = """
CREATE INDEX ix_batches_api_key_id_id
    ON halldetect.batches (api_key_id, id) WHERE api_key_id IS NOT NULL;
CREATE INDEX ix_audits_api_key_id_id
    ON halldetect.audits (api_key_id, id) WHERE api_key_id IS NOT NULL
"""
# Two owners may take the same key; nobody's are one owner's.
_IDEMPOTENCY = """
ALTER TABLE halldetect.idempotency_keys
    DROP CONSTRAINT pk_idempotency_keys,
    ADD COLUMN id BIGINT GENERATED ALWAYS AS IDENTITY,
    ADD CONSTRAINT pk_idempotency_keys PRIMARY KEY (id);
CREATE UNIQUE INDEX uq_idempotency_keys_api_key_id_key
    ON halldetect.idempotency_keys (api_key_id, key);
CREATE UNIQUE INDEX uq_idempotency_keys_key
    ON halldetect.idempotency_keys (key) WHERE api_key_id IS NULL
"""
_IDEMPOTENCY_BACK = """
DELETE FROM halldetect.idempotency_keys WHERE api_key_id IS NOT NULL;
DROP INDEX halldetect.uq_idempotency_keys_key;
DROP INDEX halldetect.uq_idempotency_keys_api_key_id_key;
ALTER TABLE halldetect.idempotency_keys
    DROP COLUMN id,
    ADD CONSTRAINT pk_idempotency_keys PRIMARY KEY (key)
"""


def upgrade() -> None:
    """Create the table; what is there already belongs to nobody."""
    op.execute(_TABLE)
    for table in _OWNED:
        op.execute(
            f"ALTER TABLE halldetect.{table} ADD COLUMN api_key_id BIGINT"
            f" CONSTRAINT fk_{table}_api_key_id REFERENCES halldetect.api_keys (id)"
        )
    op.execute(_INDEXES)
    op.execute(_IDEMPOTENCY)


def downgrade() -> None:
    """Remove keys and owners; requests that were sent with a key can be repeated no longer."""
    op.execute(_IDEMPOTENCY_BACK)
    for table in _OWNED:
        op.execute(f"ALTER TABLE halldetect.{table} DROP COLUMN api_key_id")
    op.execute("DROP TABLE halldetect.api_keys")
