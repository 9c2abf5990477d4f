"""Why a run ended."""

from __future__ import annotations

from enum import StrEnum


class Ended(StrEnum):
    """Why a run ended, in words for logs and Flower."""

    NOTHING_LEFT = "nothing is left"
    TIME_IS_UP = "its time is up"
    STOPPING = "the worker stops"
    MODEL_BROKEN = "the model is broken"
    NO_DATABASE = "the database is unavailable"
    OTHER_VERSION = "the database is of another version"
