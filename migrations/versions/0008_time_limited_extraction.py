"""Name the end of an extraction whose time was up, where the views explain themselves.

Revision ID: 0008
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COLUMN = "trail.generations.finish"
_BEFORE = (
    "why it ended: stop, length (cut at the token limit), repetition, cap or none (no language "
    "model)"
)
_AFTER = (
    "why it ended: stop, length (cut at the token limit), repetition, cap, time (the time for "
    "extraction was up) or none (no language model)"
)


def upgrade() -> None:
    """Name it."""
    op.execute(f"COMMENT ON COLUMN {_COLUMN} IS '{_AFTER}'")


def downgrade() -> None:
    """Take the name away."""
    op.execute(f"COMMENT ON COLUMN {_COLUMN} IS '{_BEFORE}'")
