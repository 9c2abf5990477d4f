"""Sources that were made ready lately: the audits of a batch often share one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from halldetect.sources import PreparedSource

_MOST_SOURCES = 32
# With its tokens and spans a source takes some ten bytes a character.
_MOST_CHARACTERS = 8_000_000


class SourceCache:
    """The least recently used source goes first, once there are too many or too long ones.

    Parameters
    ----------
    prepare : callable
        Makes a source's text ready.
    """

    def __init__(self, prepare: Callable[[str], PreparedSource]) -> None:
        self._prepare = prepare
        self._sources: OrderedDict[int, PreparedSource] = OrderedDict()
        self._characters = 0

    def get(self, document_id: int, text: str) -> PreparedSource:
        """Return the source of a document, prepared anew unless it is remembered.

        Raises
        ------
        HallDetectError
            When it cannot be prepared; that is not remembered.
        """
        if document_id in self._sources:
            self._sources.move_to_end(document_id)
            return self._sources[document_id]
        source = self._sources[document_id] = self._prepare(text)
        self._characters += len(text)
        while len(self._sources) > 1 and self._is_too_large():
            _, dropped = self._sources.popitem(last=False)
            self._characters -= len(dropped.text)
        return source

    def _is_too_large(self) -> bool:
        return len(self._sources) > _MOST_SOURCES or self._characters > _MOST_CHARACTERS
