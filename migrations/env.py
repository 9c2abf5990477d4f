"""How Alembic runs the revisions: on the connection that `db.migrate` hands over."""

from __future__ import annotations

from alembic import context

import db.models  # noqa: F401  (fills the metadata)
from db.base import Base
from db.migrate import VERSION_TABLE

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    include_schemas=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
