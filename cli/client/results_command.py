"""`halldetect results`: what was found of a batch, one JSON object a line, whole or an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cli.client.batch_state import BatchState, parse_batch_state
from cli.client.complete_file import CompleteFile
from cli.client.errors import ServiceError, ServiceUnavailable
from cli.client.service import Service
from cli.consoles import tell
from cli.progress_display import progress_display
from halldetect.settings import Settings
from halldetect.wording import counted

_EXIT_DONE = 0
_STANDARD_OUTPUT = "-"


def write_results(batch_id: int, settings: Settings, *, out: str, with_matrix: bool) -> int:
    """Write one line for every audit of a batch, in the order of submission.

    Parameters
    ----------
    batch_id : int
        Which.
    settings : Settings
        Where the service is.
    out : str
        File, which gets its name only when it is complete; ``-`` for standard output.
    with_matrix : bool
        With every probability, which is most of a trail.

    Returns
    -------
    int
        0: every line is written, also those of audits that still wait and say so.

    Raises
    ------
    InputError
        There is no such batch, or the file cannot be written.
    ServiceError
        The service cannot be reached, or its answer ended before the last line.
    """
    with Service.of(settings) as service:
        state = parse_batch_state(service.batch(batch_id))
        with _destination(out) as write, _progress(state, out) as note:
            lines = 0
            for piece in _pieces(service, state, with_matrix=with_matrix):
                write(piece)
                lines += piece.count(b"\n")
                note(lines)
            if lines != state.total:
                raise ServiceError(_cut(state))
    if state.waiting:
        were = "was" if state.waiting == 1 else "were"
        tell(
            f"batch {state.id} is not over: {state.waiting:,} of its "
            f"{counted(state.total, 'audit')} {were} waiting, which the output says of each"
        )
    return _EXIT_DONE


def _pieces(service: Service, state: BatchState, *, with_matrix: bool) -> Iterator[bytes]:
    has_begun = False
    try:
        with service.results(int(state.id), with_matrix=with_matrix) as pieces:
            for piece in pieces:
                has_begun = True
                yield piece
    except ServiceUnavailable as error:
        raise (ServiceError(f"{error}; {_cut(state)}") if has_begun else error) from None


def _cut(state: BatchState) -> str:
    return (
        f"the results of batch {state.id} ended before the last of {counted(state.total, 'line')}; "
        "run the command again"
    )


@contextmanager
def _destination(out: str) -> Iterator[Callable[[bytes], None]]:
    if out == _STANDARD_OUTPUT:
        yield _write_to_standard_output
        return
    with CompleteFile(out) as file:
        yield file.write


def _write_to_standard_output(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


@contextmanager
def _progress(state: BatchState, out: str) -> Iterator[Callable[[int], None]]:
    """Show how many lines have come, unless they come to the terminal themselves."""
    if out == _STANDARD_OUTPUT and sys.stdout.isatty():
        yield lambda _: None
        return
    with progress_display() as display:
        yield lambda lines: display.show(
            f"{lines:,} of {state.total:,} results", lines / state.total
        )
