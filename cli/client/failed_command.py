"""`halldetect failed`: which audits failed, and why."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from itertools import islice
from typing import Any

from rich.text import Text

from cli.client.answers import Answer, read_answer
from cli.client.batch_state import parse_batch_state
from cli.client.service import Service
from cli.consoles import results_console, tell
from cli.moments import moment_text
from cli.printable import printable
from halldetect.settings import Settings
from halldetect.wording import counted

_EXIT_DONE = 0
_MOST_AS_TEXT = 100


class _FailedAudit(Answer):
    id: str
    batch_id: str | None
    line: int | None
    custom_id: str | None
    finished_at: datetime
    attempts: int
    faults: int
    error: str


def list_failed(
    batch_id: int | None, settings: Settings, *, limit: int | None, as_json: bool
) -> int:
    """Print failed audits, newest first, page after page as the service sends them.

    Parameters
    ----------
    batch_id : int or None
        Only of this batch.
    settings : Settings
        Where the service is.
    limit : int or None
        Most audits to print. None prints a hundred for people, and all as JSON.
    as_json : bool
        Print one JSON object a line instead of text.

    Returns
    -------
    int
        0, also when there are none.

    Raises
    ------
    InputError
        There is no such batch.
    ServiceError
        The service cannot be reached, or failed.
    """
    if limit is None and not as_json:
        limit = _MOST_AS_TEXT
    filters: dict[str, str | int] = {"status": "failed"}
    of_all = ""
    count = 0
    with Service.of(settings) as service:
        if batch_id is not None:
            of_all = f" of {parse_batch_state(service.batch(batch_id)).failed:,}"
            filters["batch_id"] = batch_id
        console = results_console()
        audits = service.audits(**filters)
        for audit in islice(audits, limit):
            count += 1
            if as_json:
                sys.stdout.write(json.dumps(audit) + "\n")
            else:
                console.print(_described(audit), soft_wrap=True)
        has_more = next(audits, None) is not None
    them = "it" if count == 1 else "them"
    again = f"--batch {batch_id}" if batch_id is not None else "AUDIT..."
    way = f"; `halldetect retry {again}` puts {them} back into the line" if count else ""
    tell(f"{counted(count, 'failed audit')}{way}")
    if has_more:
        tell(
            f"these are the newest {count:,}{of_all}, and there are more: --limit shows so many, "
            "--json all"
        )
    return _EXIT_DONE


def _described(document: dict[str, Any]) -> Text:
    audit = read_answer(_FailedAudit, document, about="failed audits")
    place = "single" if audit.batch_id is None else f"batch {audit.batch_id}"
    if audit.line is not None:
        place += f" line {audit.line:,}"
    name = f" {printable(audit.custom_id)}" if audit.custom_id else ""
    text = Text(f"audit {audit.id}", style="bold")
    text.append(
        f" ({place}{name}): failed {moment_text(audit.finished_at)}, attempts {audit.attempts}, "
        f"faults {audit.faults}\n    {printable(audit.error)}",
        style="not bold",
    )
    return text
