"""How much waits, for whoever may refuse more."""

from __future__ import annotations

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db.models import WAITING, Audit


def count_waiting(session: Session, at_most: int, api_key_id: int | None = None) -> int:
    """Count the audits that have not ended, held by a worker or not, up to a number.

    Read from an index alone, or of one key from an index of what waits with a key.
    """
    # In words, as the index says it: the planner does not look into parameters.
    waiting = select(Audit.id).where(text(WAITING)).limit(at_most)
    if api_key_id is not None:
        waiting = waiting.where(Audit.api_key_id == api_key_id)
    return session.scalars(select(func.count()).select_from(waiting.subquery())).one()
