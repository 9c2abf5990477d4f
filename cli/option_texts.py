"""Texts from the command line, which may hold bytes that are no text."""

from __future__ import annotations

from collections.abc import Mapping

from halldetect.errors import InputError
from halldetect.record import text_fault


def check_options(options: Mapping[str, str | None]) -> None:
    """Refuse what cannot be sent: arguments that are not UTF-8 arrive with half surrogate pairs.

    Parameters
    ----------
    options : mapping of str to str or None
        Name of each option, and what was given.

    Raises
    ------
    InputError
        Naming the option.
    """
    for option, text in options.items():
        if text is not None and (fault := text_fault(text)):
            raise InputError(f"{option}: {fault}")
