"""What a check-up of the database finds: what is wrong, where, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Parameters
    ----------
    check : str
        Name of the check that found it.
    problem : str
        What is wrong.
    mend : str
        What to do about it.
    count : int
        How many things are at fault.
    examples : tuple of str
        The first of them: ids of audits or batches, or names.
    """

    check: str
    problem: str
    mend: str
    count: int = 1
    examples: tuple[str, ...] = ()
