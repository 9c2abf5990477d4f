"""Alembic revisions of the database, every one of them reversible."""
