"""Bring a database to a revision of the schema: ``python -m db.migrate upgrade``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, column, select, table, text

from db.engine import SchemaMismatch, make_engine, session_factory, translated
from db.policies import seed_builtin_policies
from halldetect.errors import HallDetectError, InputError
from halldetect.settings import load_settings

VERSION_TABLE = "halldetect_version"
# Two programs that start at once must not migrate at once.
_LOCK = 0x48414C4C


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate up to `revision`; nothing happens when the database is there already.

    At the head the policies that come with the program are stored too: no audit is without one.

    Raises
    ------
    DatabaseUnavailable
        When the server cannot be reached.
    SchemaMismatch
        When the database is at a revision that this program does not know.
    InputError
        When `revision` is none, or lies in the other direction.
    """
    _migrate(url, command.upgrade, revision)
    if revision == "head":
        engine = make_engine(url)
        with translated(), session_factory(engine).begin() as session:
            seed_builtin_policies(session)
        engine.dispose()


def downgrade(url: str, revision: str) -> None:
    """Migrate down to `revision` (``base`` removes everything of ours).

    Raises
    ------
    DatabaseUnavailable
        When the server cannot be reached.
    SchemaMismatch
        When the database is at a revision that this program does not know.
    InputError
        When `revision` is none, or lies in the other direction.
    """
    _migrate(url, command.downgrade, revision)


def current_revision(engine: Engine) -> str | None:
    """Return the revision that the database is at, None for none."""
    with translated(), engine.connect() as connection:
        if not connection.scalar(text("SELECT to_regclass(:name)"), {"name": VERSION_TABLE}):
            return None
        version: str | None = connection.scalar(
            select(column("version_num")).select_from(table(VERSION_TABLE))
        )
        return version


def head_revision() -> str:
    """Return the newest revision that this program knows."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise RuntimeError("the package migrations holds no revision")
    return head


def unknown_fault(revision: str) -> str | None:
    """Return what is wrong with a database at a revision that a newer program left it at.

    None when this program knows the revision, be it an old one.
    """
    if revision in _revisions():
        return None
    return (
        f"the database is at revision {revision} and this version knows none beyond "
        f"{head_revision()}: start the version that migrated it, or let that one take it back "
        f"with `python -m db.migrate downgrade {head_revision()}`"
    )


def _revisions() -> list[str]:
    """Return all revisions that this program knows, the oldest first."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return [script.revision for script in scripts][::-1]


def _migrate(url: str, run: Callable[[Config, str], None], revision: str) -> None:
    engine = make_engine(url)
    try:
        _refuse_unknown(current_revision(engine))
        with translated(), engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            connection.commit()
            config = _config()
            config.attributes["connection"] = connection
            try:
                run(config, revision)
            except CommandError as error:
                raise InputError(
                    f"there is no revision {revision!r} to go to ({error}); there are base, "
                    f"{', '.join(_revisions())}"
                ) from None
            connection.commit()
    finally:
        engine.dispose()


def _refuse_unknown(revision: str | None) -> None:
    fault = None if revision is None else unknown_fault(revision)
    if fault is not None:
        raise SchemaMismatch(fault)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "migrations:")
    return config


def main() -> int:
    """Run the command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m db.migrate", description=__doc__)
    parser.add_argument("action", choices=["upgrade", "downgrade"])
    parser.add_argument("revision", nargs="?", help="default: head for upgrade")
    arguments = parser.parse_args()
    if arguments.action == "downgrade" and arguments.revision is None:
        parser.error("downgrade needs the revision to go back to")
    try:
        settings = load_settings()
        if settings.database_url is None:
            parser.error("set DATABASE_URL to postgresql://user:password@host:port/name")
        url = settings.database_url.get_secret_value()
        if arguments.action == "upgrade":
            upgrade(url, arguments.revision or "head")
        else:
            downgrade(url, arguments.revision)
    except HallDetectError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
