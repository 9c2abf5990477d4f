"""Everything that knows SQL: tables, sessions, and what is read and written."""
