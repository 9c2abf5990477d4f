"""Views for analysts, in a schema of their own, and the role that reads them and nothing else.

Revision ID: 0003
"""

from __future__ import annotations

from importlib.resources import files

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SCRIPTS = ("audits", "claims", "scorings", "extractions", "reviews", "comments", "reader")
_VIEWS = (
    "audits",
    "batches",
    "chunk_probabilities",
    "claim_scorings",
    "claims",
    "daily_rates",
    "document_readings",
    "documents",
    "generations",
    "models",
    "policies",
    "rejected_claims",
    "reviewed_claims",
    "reviews",
    "scorings",
    "unaudited_sentences",
)

# Its rights in this database went with the schema. It stays where another database gives it some,
# or where logins are its members: dropping it would take the rights of those people away for good.
_DROP_ROLE = """
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM pg_auth_members AS m
        JOIN pg_roles AS r ON r.oid = m.roleid
        JOIN pg_roles AS member ON member.oid = m.member
        WHERE r.rolname = 'halldetect_reader'
            AND member.rolname <> current_user
    ) THEN
        DROP ROLE IF EXISTS halldetect_reader;
    END IF;
EXCEPTION
    WHEN dependent_objects_still_exist OR insufficient_privilege OR object_in_use THEN
        RAISE WARNING 'the role halldetect_reader stays: it is used elsewhere, or not ours to drop';
END
$$
"""


def upgrade() -> None:
    """Create the views with their comments, and the role if it may be created."""
    op.execute("CREATE SCHEMA trail")
    folder = files("migrations") / "sql"
    for script in _SCRIPTS:
        op.execute((folder / f"{revision}_{script}.sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    """Remove them; refused while views of other people read ours."""
    op.execute("DROP VIEW " + ", ".join(f"trail.{view}" for view in _VIEWS))
    op.execute("DROP FUNCTION halldetect.chunk_of_span")
    op.execute("DROP SCHEMA trail")
    op.execute(_DROP_ROLE)
