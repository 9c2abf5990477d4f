"""Whose an audit is, and who may see it.

What is submitted with an API key belongs to that key. What is submitted without one (where the API
asks for none) belongs to nobody, and then only those who see everything see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, true


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf the database is asked.

    Parameters
    ----------
    api_key_id : int or None
        The key that new rows belong to; None for nobody's.
    sees_all : bool
        Whether rows of other keys, and nobody's, are there for the caller.
    """

    api_key_id: int | None = None
    sees_all: bool = False

    def sees(self, owner: Any) -> ColumnElement[bool]:
        """Return the condition that rows with `owner`, a column, are there for the caller."""
        return true() if self.sees_all else owner == self.api_key_id

    @property
    def restricted_to(self) -> int | None:
        """The one key whose rows the caller sees; None when it sees all."""
        return None if self.sees_all else self.api_key_id


UNRESTRICTED = Caller(sees_all=True)
"""Commands and workers on the database itself, and an API that asks for no keys."""
