"""What audits are listed by, in one index: a rare or old audit is found without reading the table.

Revision ID: 0011
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.execute(
        "CREATE INDEX ix_audits_id_listed ON halldetect.audits (id)"
        " INCLUDE (submitted_at, policy_id, api_key_id, status, label, outcome)"
    )


def downgrade() -> None:
    """Remove it."""
    op.execute("DROP INDEX halldetect.ix_audits_id_listed")
