"""Rescorings: what was skipped and why, and when a job was last active.

Revision ID: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.execute(
        """
        ALTER TABLE halldetect.rescorings
            ADD COLUMN skips JSONB DEFAULT '{}' NOT NULL,
            ADD COLUMN active_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            ADD CONSTRAINT ck_rescorings_skips_object CHECK (jsonb_typeof(skips) = 'object')
        """
    )


def downgrade() -> None:
    """Remove them."""
    op.execute("ALTER TABLE halldetect.rescorings DROP COLUMN skips, DROP COLUMN active_at")
