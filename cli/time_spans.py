"""Spans of time on the command line, as in "24h"."""

from __future__ import annotations

import re
from datetime import timedelta

import typer

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_LONGEST = timedelta(days=365)


def time_span(text: str) -> timedelta:
    """Read a span of time of a year at most.

    Raises
    ------
    typer.BadParameter
        It is none.
    """
    if text == "0":
        return timedelta(0)
    parts = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    span = None if parts is None else int(parts[1]) * _UNITS[parts[2]]
    if span is None or span > _LONGEST:
        raise typer.BadParameter(
            f"{text!r} is no span of time up to {_LONGEST.days} days: "
            "write it as in 24h, 30m, 7d, or 0"
        )
    return span
