"""Character spans: the one way this project points into a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range ``[start, end)`` of characters (Unicode code points) in some text.

    Parameters
    ----------
    start : int
        Offset of the first character.
    end : int
        Offset one past the last character; at least ``start``.
    """

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of `text` that the span covers."""
        return text[self.start : self.end]

    def covers(self, other: Span) -> bool:
        """Tell whether `other` lies wholly inside this span."""
        return self.start <= other.start and other.end <= self.end
