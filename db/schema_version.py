"""Whether the tables of a database are of the version that this program was written for.

A program that works on tables of another version could fail every audit that it touches, or store
what the right version cannot read. It does nothing instead, and says which version is needed.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Text, column, select, table
from sqlalchemy.orm import Session

from db.engine import SchemaMismatch
from db.migrate import VERSION_TABLE, head_revision, unknown_fault

_head_revision = cache(head_revision)  # it reads files that do not change


def version_fault(current: str | None) -> str | None:
    """Return what is wrong with a database at a revision, and what to do; None when all is well.

    Parameters
    ----------
    current : str or None
        The revision that the database is at, None for a database without tables of ours.
    """
    wanted = _head_revision()
    if current == wanted:
        return None
    older_fault = (
        f"the database is at revision {current or 'none'} and this version needs {wanted}: "
        "run `python -m db.migrate upgrade`"
    )
    return older_fault if current is None else unknown_fault(current) or older_fault


def require_this_version(session: Session) -> None:
    """Refuse to work on tables of another version.

    Raises
    ------
    SchemaMismatch
        With both revisions and what to do.
    """
    stored = select(column("version_num", Text())).select_from(table(VERSION_TABLE))
    fault = version_fault(session.scalar(stored))
    if fault is not None:
        raise SchemaMismatch(fault)
