"""Tables as plain text, for pipes and files: a row is a line, whole and without a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

_GAP = "  "
_INDENT = "    "


def plain_table(table: Table) -> Text:
    """Return a table as lines that no width breaks or cuts, whatever the terminal's.

    A row is a line, its columns are padded with spaces. Where cells have several lines, the row is
    the first of them, up to the first such cell, and the rest follows indented.

    Parameters
    ----------
    table : Table
        With cells of text.
    """
    return Text("\n".join(line.rstrip() for line in _lines(table)))


def holds_text_alone(table: Table) -> bool:
    """Return whether a table can be told as text; others place bars and such beside each other."""
    return all(isinstance(cell, str | Text) for column in table.columns for cell in column.cells)


def widest_line(column: Column) -> int:
    """Return the width of the longest line of a column."""
    return _widest(line for cell in _cells(column) for line in cell.split("\n"))


def longest_word(column: Column) -> int:
    """Return the width of the longest word of a column."""
    return _widest(word for cell in _cells(column) for word in cell.split())


def _cells(column: Column) -> list[str]:
    return [_plain(cell) for cell in (column.header, *column.cells)]


def _widest(parts: Iterable[str]) -> int:
    return max(map(cell_len, parts), default=0)


def _lines(table: Table) -> Iterator[str]:
    if table.title is not None:
        yield _plain(table.title)
    rows = [
        [_plain(cell).split("\n") for cell in row]
        for row in zip(*(column.cells for column in table.columns), strict=True)
    ]
    heads = [_plain(column.header) for column in table.columns] if table.show_header else []
    above = [[[head] for head in heads]] if any(heads) else []
    widths = [_width([row[number] for row in above + rows]) for number in range(len(table.columns))]
    for head in above:
        yield from _row(table.columns, widths, head)
    for number, (row, cells) in enumerate(zip(table.rows, rows, strict=True), start=1):
        yield from _row(table.columns, widths, cells)
        if row.end_section and number < len(rows):
            yield ""


def _row(
    columns: Sequence[Column], widths: Sequence[int], cells: Sequence[list[str]]
) -> Iterator[str]:
    """Yield the line of a row, and below it what does not fit into one."""
    beside = next(
        (number for number, cell in enumerate(cells, start=1) if len(cell) > 1), len(cells)
    )
    yield _GAP.join(
        _padded(cell[0], width, column)
        for cell, width, column in zip(cells[:beside], widths, columns, strict=False)
    )
    below = [*cells[beside - 1][1:], *(line for cell in cells[beside:] for line in cell)]
    yield from (f"{_INDENT}{line}" for line in below if line)


def _width(cells: Sequence[list[str]]) -> int:
    return max((cell_len(cell[0]) for cell in cells if len(cell) == 1), default=0)


def _padded(text: str, width: int, column: Column) -> str:
    space = " " * (width - cell_len(text))
    return f"{space}{text}" if column.justify == "right" else f"{text}{space}"


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
