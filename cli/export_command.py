"""`halldetect export`: a batch as a table for other tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cli.client.complete_file import CompleteFile
from cli.consoles import tell
from cli.database import open_database
from cli.export_formats import ExportFormat, open_table
from cli.progress_display import progress_display
from db.export import BatchExport, open_export
from db.exported import Exported
from halldetect.errors import InputError
from halldetect.settings import Settings
from halldetect.wording import counted

_EXIT_DONE = 0
_STANDARD_OUTPUT = "-"


def export_batch(
    batch_id: int, settings: Settings, *, file_format: ExportFormat, out: str, what: Exported
) -> int:
    """Write a batch as it stands, one row for each audit, claim or probability.

    Parameters
    ----------
    batch_id : int
        Which.
    settings : Settings
        Where the database is.
    file_format : ExportFormat
        Of the file.
    out : str
        File, which gets its name only when it is complete; ``-`` for standard output.
    what : Exported
        What a row is.

    Returns
    -------
    int
        0.

    Raises
    ------
    InputError
        There is no such batch, the file cannot be written, or the format needs a library that is
        not installed.
    UnavailableError
        The database cannot be reached.
    """
    if out == _STANDARD_OUTPUT and file_format is ExportFormat.PARQUET:
        raise InputError("--format parquet needs a file: give --out FILE")
    with open_database(settings) as engine, open_export(engine, what, batch_id) as export:
        if export is None:
            raise InputError(f"there is no batch {batch_id}")
        with _destination(out) as write:
            rows = _write(export, file_format, write)
        waiting, total = export.batch.waiting, export.batch.total
    if out != _STANDARD_OUTPUT:
        tell(f"{out}: {counted(rows, 'row')}")
    if waiting:
        were = "was" if waiting == 1 else "were"
        tell(
            f"batch {batch_id} is not over: {waiting:,} of its {counted(total, 'audit')} {were} "
            "waiting, without claims here"
        )
    return _EXIT_DONE


def _write(export: BatchExport, file_format: ExportFormat, write: Callable[[bytes], object]) -> int:
    rows = 0
    with open_table(file_format, export.columns, write) as table, progress_display() as display:
        for page in export.pages():
            table.add(page.rows)
            rows += len(page.rows)
            display.show(f"{counted(rows, 'row')}, up to line {page.line:,}", None)
    return rows


@contextmanager
def _destination(out: str) -> Iterator[Callable[[bytes], object]]:
    if out == _STANDARD_OUTPUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with CompleteFile(out) as file:
        yield file.write
