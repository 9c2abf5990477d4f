"""Webhooks and their deliveries, and an index that tells whether a batch is finished.

Revision ID: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_WEBHOOKS = """
CREATE TABLE halldetect.webhooks (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    api_key_id BIGINT,
    url TEXT NOT NULL,
    secret BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_webhooks PRIMARY KEY (id),
    CONSTRAINT fk_webhooks_api_key_id FOREIGN KEY (api_key_id) REFERENCES halldetect.api_keys (id),
    CONSTRAINT ck_webhooks_url_length CHECK (length(url) BETWEEN 1 AND 2048),
    CONSTRAINT ck_webhooks_secret_length CHECK (octet_length(secret) = 32)
);
CREATE INDEX ix_webhooks_api_key_id ON halldetect.webhooks (api_key_id)
"""
_DELIVERIES = """
CREATE TABLE halldetect.webhook_deliveries (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    webhook_id BIGINT NOT NULL,
    batch_id BIGINT NOT NULL,
    message_id UUID DEFAULT gen_random_uuid() NOT NULL,
    state VARCHAR(32) DEFAULT 'waiting' NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE,
    last_attempt_at TIMESTAMP WITH TIME ZONE,
    last_status SMALLINT,
    last_error TEXT,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id),
    CONSTRAINT uq_webhook_deliveries_webhook_id_batch_id UNIQUE (webhook_id, batch_id),
    CONSTRAINT uq_webhook_deliveries_message_id UNIQUE (message_id),
    CONSTRAINT fk_webhook_deliveries_webhook_id FOREIGN KEY (webhook_id)
        REFERENCES halldetect.webhooks (id) ON DELETE CASCADE,
    CONSTRAINT fk_webhook_deliveries_batch_id FOREIGN KEY (batch_id)
        REFERENCES halldetect.batches (id) ON DELETE CASCADE,
    CONSTRAINT ck_webhook_deliveries_state
        CHECK (state IN ('waiting', 'due', 'delivered', 'failed')),
    CONSTRAINT ck_webhook_deliveries_attempts_not_negative CHECK (attempts >= 0),
    CONSTRAINT ck_webhook_deliveries_next_if_due
        CHECK ((state = 'due') = (next_attempt_at IS NOT NULL)),
    CONSTRAINT ck_webhook_deliveries_finished_if_final
        CHECK ((state IN ('delivered', 'failed')) = (finished_at IS NOT NULL)),
    CONSTRAINT ck_webhook_deliveries_attempted_if_due CHECK (
        (attempts = 0) = (last_attempt_at IS NULL)
        AND (attempts > 0 OR last_status IS NULL)
        AND (attempts = 0 OR state <> 'waiting')
    ),
    CONSTRAINT ck_webhook_deliveries_status_range CHECK (last_status BETWEEN 200 AND 999),
    CONSTRAINT ck_webhook_deliveries_success_if_delivered CHECK (
        state <> 'delivered'
        OR (attempts > 0 AND coalesce(last_status, 0) BETWEEN 200 AND 299 AND last_error IS NULL)
    ),
    CONSTRAINT ck_webhook_deliveries_error_if_failed
        CHECK (state <> 'failed' OR last_error IS NOT NULL)
);
CREATE INDEX ix_webhook_deliveries_batch_id ON halldetect.webhook_deliveries (batch_id);
CREATE INDEX ix_webhook_deliveries_waiting
    ON halldetect.webhook_deliveries (id) WHERE state = 'waiting';
CREATE INDEX ix_webhook_deliveries_due
    ON halldetect.webhook_deliveries (next_attempt_at) WHERE state = 'due'
"""
_UNFINISHED = """
CREATE INDEX ix_audits_unfinished_batch_id ON halldetect.audits (batch_id)
    WHERE status IN ('queued', 'extracted') AND batch_id IS NOT NULL
"""


def upgrade() -> None:
    """Create both tables; batches that are there already are told to nobody."""
    op.execute(_WEBHOOKS)
    op.execute(_DELIVERIES)
    op.execute(_UNFINISHED)


def downgrade() -> None:
    """Remove them; nothing is sent any more."""
    op.execute("DROP INDEX halldetect.ix_audits_unfinished_batch_id")
    op.execute("DROP TABLE halldetect.webhook_deliveries")
    op.execute("DROP TABLE halldetect.webhooks")
