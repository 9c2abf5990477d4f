"""Tables in a file: Parquet, JSON lines and CSV, each written in portions as they come."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from cli.result_json import object_line
from halldetect.errors import InputError

if TYPE_CHECKING:
    import pyarrow

    from db.export import ExportColumn

Row = tuple[Any, ...]
Write = Callable[[bytes], object]
# Parquet compresses and skips by groups of rows: too few rows make many small groups.
_ROW_GROUP = 20_000


class ExportFormat(StrEnum):
    """Format of an exported file."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


class Table(Protocol):
    """A file that takes rows."""

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows, or keep them for the next portion."""

    def finish(self) -> None:
        """Write what is kept, and what ends the file."""

    def abandon(self) -> None:
        """Write nothing more, because of an error."""


@contextmanager
def open_table(
    file_format: ExportFormat, columns: Sequence[ExportColumn], write: Write
) -> Iterator[Table]:
    """Open a table whose bytes go to `write`; it is finished unless an error leaves the block.

    Raises
    ------
    InputError
        The format needs a library that is not installed.
    """
    table: Table
    if file_format is ExportFormat.PARQUET:
        table = ParquetTable(columns, write)
    elif file_format is ExportFormat.CSV:
        table = CsvTable(columns, write)
    else:
        table = JsonLinesTable(columns, write)
    try:
        yield table
    except BaseException:
        table.abandon()
        raise
    table.finish()


class JsonLinesTable:
    """One JSON object a row, with null for what there is not."""

    def __init__(self, columns: Sequence[ExportColumn], write: Write) -> None:
        self._names = [column.name for column in columns]
        self._write = write

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        lines = [
            object_line(dict(zip(self._names, map(_json_value, row), strict=True))) for row in rows
        ]
        self._write(b"".join(lines))

    def finish(self) -> None:
        """Do nothing: every line is whole."""

    def abandon(self) -> None:
        """Do nothing: nothing is kept."""


class CsvTable:
    """CSV after RFC 4180, in UTF-8, with a line of names; nothing between commas for null.

    A text that a spreadsheet would take for a formula has an apostrophe before it: a response or a
    custom_id may begin like one so on purpose.
    """

    def __init__(self, columns: Sequence[ExportColumn], write: Write) -> None:
        self._write = write
        self._add_lines([[column.name for column in columns]])

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        self._add_lines([[_csv_value(value) for value in row] for row in rows])

    def finish(self) -> None:
        """Do nothing: every line is whole."""

    def abandon(self) -> None:
        """Do nothing: nothing is kept."""

    def _add_lines(self, lines: Sequence[Sequence[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(lines)
        self._write(text.getvalue().encode())


class ParquetTable:
    """Parquet, compressed by zstd; JSON objects as text."""

    def __init__(self, columns: Sequence[ExportColumn], write: Write) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise InputError(
                "--format parquet needs pyarrow: `pip install 'halldetect[parquet]'`, or take "
                "jsonl or csv"
            ) from None
        self._schema = pyarrow.schema([(one.name, _arrow_type(pyarrow, one)) for one in columns])
        self._is_json = [column.type == "jsonb" for column in columns]
        self._make_batch = pyarrow.record_batch
        self._sink = _Sink(write)
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._rows: list[Row] = []

    def add(self, rows: Sequence[Row]) -> None:
        """Keep rows until they fill a group."""
        self._rows.extend(rows)
        if len(self._rows) >= _ROW_GROUP:
            self._write_group()

    def finish(self) -> None:
        """Write the last group and the index, without which the file is none."""
        if self._rows:
            self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        """Let the library close its file, which takes nothing any more."""
        self._sink.discard()
        self._writer.close()

    def _write_group(self) -> None:
        columns = [
            [_json_text(value) for value in values] if is_json else list(values)
            for is_json, values in zip(self._is_json, zip(*self._rows, strict=True), strict=True)
        ]
        self._writer.write_batch(self._make_batch(columns, schema=self._schema))
        self._rows.clear()


class _Sink(io.RawIOBase):
    """Where the Parquet library writes to."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write
        self._position = 0

    def discard(self) -> None:
        self._write = lambda _: None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, content: Any, /) -> int:
        self._write(bytes(content))
        self._position += len(content)
        return len(content)


def _arrow_type(pyarrow: Any, column: ExportColumn) -> pyarrow.DataType:
    types = {
        "bool": pyarrow.bool_(),
        "int4": pyarrow.int32(),
        "int8": pyarrow.int64(),
        "float4": pyarrow.float32(),
        "float8": pyarrow.float64(),
        "date": pyarrow.date32(),
        "timestamptz": pyarrow.timestamp("us", tz="UTC"),
        "text": pyarrow.string(),
        "jsonb": pyarrow.string(),
    }
    kind = types[column.type]
    return pyarrow.list_(kind) if column.is_list else kind


# Some spreadsheets pass over white space before the sign, and take wide signs too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _json_value(value: Any) -> Any:
    """Return a value as JSON has it: times as text, in UTC."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _csv_value(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return _json_text(value)
    return _json_value(value)


def _json_text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
