"""Which statements the accepted claims leave uncovered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from halldetect.claims.copy_check import Placement
from halldetect.claims.statements import Statement
from halldetect.claims.tokens import Token


def uncovered(
    statements: Sequence[Statement],
    tokens: Sequence[Sequence[Token]],
    placements: Iterable[Placement],
) -> list[int]:
    """Return the indices of the checkable statements that must be claims of their own.

    A statement is covered only when every content word, name, number and negation in it is
    repeated by an accepted claim that is placed in it; one without content words only by such a
    claim of any kind.

    Parameters
    ----------
    statements : sequence of Statement
        Statements of the response.
    tokens : sequence of sequence of Token
        Their words.
    placements : iterable of Placement
        Where the accepted claims stand.
    """
    repeated: dict[int, set[int]] = {}
    for placement in placements:
        repeated.setdefault(placement.statement, set()).update(placement.tokens)
    return [
        position
        for position, statement in enumerate(statements)
        if statement.reason is None and not _is_covered(tokens[position], repeated.get(position))
    ]


def _is_covered(tokens: Sequence[Token], repeated: set[int] | None) -> bool:
    if repeated is None:
        return False
    return all(i in repeated for i, token in enumerate(tokens) if token.is_content)
