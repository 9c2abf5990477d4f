"""Several secrets for one webhook, and since when a delivery is due.

So that a secret can be replaced while receivers know either, and that what waits for a receiver has
an age.

Revision ID: 0010
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_SECRETS = """
CREATE TABLE halldetect.webhook_secrets (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    webhook_id BIGINT NOT NULL,
    secret BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_webhook_secrets PRIMARY KEY (id),
    CONSTRAINT fk_webhook_secrets_webhook_id
        FOREIGN KEY (webhook_id) REFERENCES halldetect.webhooks (id) ON DELETE CASCADE,
    CONSTRAINT ck_webhook_secrets_secret_length CHECK (octet_length(secret) = 32)
);
CREATE INDEX ix_webhook_secrets_webhook_id ON halldetect.webhook_secrets (webhook_id);
CREATE UNIQUE INDEX uq_webhook_secrets_newest
    ON halldetect.webhook_secrets (webhook_id) WHERE expires_at IS NULL;
INSERT INTO halldetect.webhook_secrets (webhook_id, secret, created_at)
    SELECT id, secret, created_at FROM halldetect.webhooks ORDER BY id;
ALTER TABLE halldetect.webhooks DROP COLUMN secret
"""
# Of a delivery that was tried already it is not known any more when it became due.
_DUE_SINCE = """
ALTER TABLE halldetect.webhook_deliveries ADD COLUMN due_since TIMESTAMP WITH TIME ZONE;
UPDATE halldetect.webhook_deliveries
    SET due_since = coalesce(last_attempt_at, next_attempt_at, finished_at)
    WHERE state <> 'waiting';
ALTER TABLE halldetect.webhook_deliveries
    ADD CONSTRAINT ck_webhook_deliveries_waiting_or_due_since
        CHECK ((state = 'waiting') = (due_since IS NULL))
"""
_SECRETS_BACK = """
ALTER TABLE halldetect.webhooks ADD COLUMN secret BYTEA;
UPDATE halldetect.webhooks webhook SET secret = newest.secret
    FROM halldetect.webhook_secrets newest
    WHERE newest.webhook_id = webhook.id AND newest.expires_at IS NULL;
ALTER TABLE halldetect.webhooks
    ALTER COLUMN secret SET NOT NULL,
    ADD CONSTRAINT ck_webhooks_secret_length CHECK (octet_length(secret) = 32);
DROP TABLE halldetect.webhook_secrets
"""


def upgrade() -> None:
    """Move the secrets into a table of their own, and note since when deliveries are due."""
    op.execute(_SECRETS)
    op.execute(_DUE_SINCE)


def downgrade() -> None:
    """Move the newest secret of each webhook back; those it replaced sign nothing any more."""
    op.execute("ALTER TABLE halldetect.webhook_deliveries DROP COLUMN due_since")
    op.execute(_SECRETS_BACK)
