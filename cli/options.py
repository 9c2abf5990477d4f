"""What several commands' options have in common."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from halldetect.errors import InputError
from halldetect.settings import ExtractorBackend

LARGEST_ID = 2**63 - 1


class FailOn(StrEnum):
    """What makes the exit code 1."""

    HALLUCINATED = "hallucinated"


ExtractorOption = Annotated[
    ExtractorBackend | None,
    typer.Option("--extractor", help="Who proposes claims: a language model, or no model at all."),
]
BatchArgument = Annotated[
    int, typer.Argument(metavar="BATCH", min=1, max=LARGEST_ID, help="Number of the batch.")
]


def refuse_options(reason: str, options: dict[str, Any]) -> None:
    """Refuse options that were given and do not apply.

    Parameters
    ----------
    reason : str
        Why they do not apply.
    options : dict
        Their names and what they were given.

    Raises
    ------
    InputError
        Naming those that have a value.
    """
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"{reason}: leave out {', '.join(given)}")
