"""Audits by status: counting them, and listing those that failed, without reading the table.

Revision ID: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.execute(
        "CREATE INDEX ix_audits_status_id ON halldetect.audits (status, id) INCLUDE (faults)"
    )


def downgrade() -> None:
    """Remove it."""
    op.execute("DROP INDEX halldetect.ix_audits_status_id")
