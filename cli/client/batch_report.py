"""Printing a batch, and what it came to in the end."""

from __future__ import annotations

import heapq
import json
import sys
from typing import Any

from rich.console import Console

from cli.client.answers import read_answer
from cli.client.batch_state import BatchState, parse_batch_state
from cli.client.batch_tables import FlaggedAudit, batch_table, flagged_table
from cli.client.errors import ServiceUnavailable
from cli.client.service import Service
from cli.consoles import results_console, tell
from halldetect.wording import counted

_EXIT_DONE, _EXIT_FLAGGED, _EXIT_FAILED = 0, 1, 2
_FLAGGED_SHOWN = 5
# All of them are read for it, a thousand in a request.
_MOST_FLAGGED_RANKED = 20_000


def report_end(
    service: Service, document: dict[str, Any], *, as_json: bool, fail_on_hallucinated: bool
) -> int:
    """Print what a batch came to and return the exit code.

    Parameters
    ----------
    service : Service
        Asked for the responses with the highest scores.
    document : dict
        The service's last description of the batch.
    as_json : bool
        Print that description instead of tables.
    fail_on_hallucinated : bool
        Tell by the exit code whether any response was flagged.

    Returns
    -------
    int
        2 if any audit failed or was cancelled, else 1 if asked to tell and any response was
        flagged, else 0.
    """
    state = parse_batch_state(document)
    if as_json:
        print_document(document)
    else:
        console = results_console()
        console.print(batch_table(state))
        if state.hallucinated:
            _print_flagged(console, service, state)
    if state.failed or state.cancelled:
        tell(
            f"batch {state.id}: {_counts(state)}; `halldetect results {state.id}` says which and "
            "why"
        )
        return _EXIT_FAILED
    return _EXIT_FLAGGED if fail_on_hallucinated and state.hallucinated else _EXIT_DONE


def most_hallucinated(service: Service, state: BatchState) -> list[FlaggedAudit]:
    """Return the few responses of a batch with the highest scores, the highest first."""
    flagged = (
        read_answer(FlaggedAudit, audit, about="flagged audits")
        for audit in service.audits(batch_id=state.id, label="hallucinated")
    )
    return heapq.nlargest(_FLAGGED_SHOWN, flagged, key=lambda audit: audit.fedscore)


def _print_flagged(console: Console, service: Service, state: BatchState) -> None:
    """Print the highest scores if the service answers; what the batch came to is known anyway."""
    if state.hallucinated > _MOST_FLAGGED_RANKED:
        tell(
            f"{state.hallucinated:,} responses are flagged, too many to look for the highest "
            f"scores here; `halldetect results {state.id}` prints all, and SQL sorts them "
            "(docs/sql.md)"
        )
        return
    try:
        flagged = most_hallucinated(service, state)
    except ServiceUnavailable as error:
        tell(f"{error}; `halldetect results {state.id}` prints what was flagged")
    else:
        console.print()
        console.print(flagged_table(flagged))


def _counts(state: BatchState) -> str:
    counts = {"failed": state.failed, "cancelled": state.cancelled}
    return " and ".join(
        f"{counted(count, 'audit')} {was}" for was, count in counts.items() if count
    )


def print_document(document: dict[str, Any]) -> None:
    """Print a document of the service as it is, indented for a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(document, indent=indent, ensure_ascii=False) + "\n")
