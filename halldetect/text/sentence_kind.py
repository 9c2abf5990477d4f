"""What kinds of unit a text is made of."""

from __future__ import annotations

from enum import StrEnum


class SentenceKind(StrEnum):
    """Where in the layout of a text a sentence stands."""

    PROSE = "prose"
    LIST_ITEM = "list_item"
    CODE = "code"
    TABLE_ROW = "table_row"
    TABLE_RULE = "table_rule"
