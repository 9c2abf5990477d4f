"""Several secrets for one API key, and what waits by key.

So that a secret can be replaced while both are in use, and one key's share of the line is counted
without reading the others'.

Revision ID: 0009
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE halldetect.api_key_secrets (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    api_key_id BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_api_key_secrets PRIMARY KEY (id),
    CONSTRAINT uq_api_key_secrets_sha256 UNIQUE (sha256),
    CONSTRAINT fk_api_key_secrets_api_key_id
        FOREIGN KEY (api_key_id) REFERENCES halldetect.api_keys (id),
    CONSTRAINT ck_api_key_secrets_sha256_length CHECK (octet_length(sha256) = 32)
);
CREATE INDEX ix_api_key_secrets_api_key_id_expires_at
    ON halldetect.api_key_secrets (api_key_id, expires_at);
CREATE UNIQUE INDEX uq_api_key_secrets_newest
    ON halldetect.api_key_secrets (api_key_id) WHERE expires_at IS NULL;
INSERT INTO halldetect.api_key_secrets (api_key_id, sha256, created_at)
    SELECT id, sha256, created_at FROM halldetect.api_keys ORDER BY id;
ALTER TABLE halldetect.api_keys DROP COLUMN sha256
"""
_WAITING = """
CREATE INDEX ix_audits_api_key_id_waiting ON halldetect.audits (api_key_id)
    WHERE api_key_id IS NOT NULL AND status IN ('queued', 'extracted')
"""
_TABLE_BACK = """
ALTER TABLE halldetect.api_keys ADD COLUMN sha256 BYTEA;
UPDATE halldetect.api_keys key SET sha256 = secret.sha256
    FROM halldetect.api_key_secrets secret
    WHERE secret.api_key_id = key.id AND secret.expires_at IS NULL;
ALTER TABLE halldetect.api_keys
    ALTER COLUMN sha256 SET NOT NULL,
    ADD CONSTRAINT uq_api_keys_sha256 UNIQUE (sha256),
    ADD CONSTRAINT ck_api_keys_sha256_length CHECK (octet_length(sha256) = 32);
DROP TABLE halldetect.api_key_secrets
"""


def upgrade() -> None:
    """Move the secrets into a table of their own, and create the index."""
    op.execute(_TABLE)
    op.execute(_WAITING)


def downgrade() -> None:
    """Move the newest secret of each key back; those that were replaced are accepted no longer."""
    op.execute("DROP INDEX halldetect.ix_audits_api_key_id_waiting")
    op.execute(_TABLE_BACK)
