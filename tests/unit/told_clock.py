"""A clock that the test moves."""

from __future__ import annotations


class Clock:
    """Seconds that pass when told."""

    def __init__(self):
        self.now = 1e6

    def __call__(self):
        return self.now
