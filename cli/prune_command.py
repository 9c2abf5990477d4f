"""`halldetect prune`: say what is too old, ask, and delete it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, date, datetime

from rich.console import Console

from cli.consoles import messages_console, results_console, tell
from cli.database import open_database
from cli.progress_display import progress_display
from db.retention import Pruned, Pruning, pruning
from db.retention_plan import PrunePlan
from halldetect.errors import InputError
from halldetect.settings import Settings

_EXIT_DONE, _EXIT_LEFT_OVER = 0, 2


def prune_database(before: str, settings: Settings, *, agreed: bool, as_json: bool) -> int:
    """Delete audits that finished before a day, and all that only they need.

    Parameters
    ----------
    before : str
        The day, as 2026-03-01; it begins at midnight UTC.
    settings : Settings
        Where the database is.
    agreed : bool
        Delete without asking.
    as_json : bool
        Print one JSON object instead of text.

    Returns
    -------
    int
        0 when nothing of the plan is left or the answer was no, else 2.

    Raises
    ------
    InputError
        That is no day in the past, nobody can be asked, or another prune is running.
    UnavailableError
        The database cannot be reached.
    """
    day = _past_day(before)
    with open_database(settings) as engine, pruning(engine, day) as it:
        plan = it.plan
        must_ask = not (agreed or plan.is_empty)
        console = messages_console() if as_json else results_console()
        if not as_json or (must_ask and sys.stdin.isatty()):
            _print_plan(console, plan)
        if must_ask and not sys.stdin.isatty():
            if as_json:
                _print_object(plan, None)
            raise InputError("nothing was deleted: there is no terminal to ask at; give --yes")
        done = _run(it) if not plan.is_empty and (agreed or _asked()) else None
    if as_json:
        _print_object(plan, done)
    elif done is not None:
        console.print(
            f"deleted: audits {done.audits:,}, documents {done.documents:,}, months of "
            f"probabilities {len(done.partitions):,}, Idempotency-Keys {done.idempotency_keys:,}"
        )
    if done is not None and done.partitions_in_use:
        tell(
            f"still in use and not dropped: {', '.join(done.partitions_in_use)}; run the command "
            "again when nobody reads them"
        )
        return _EXIT_LEFT_OVER
    return _EXIT_DONE


def _past_day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--before: {text!r} is no day; write it as 2026-03-01") from None
    if day > datetime.now(UTC).date():
        raise InputError(f"--before: {day} is in the future; everything would go")
    return day


def _print_plan(console: Console, plan: PrunePlan) -> None:
    if plan.is_empty:
        console.print(f"nothing that finished before {plan.before} is left")
    else:
        console.print(f"finished before {plan.before} (UTC) and to be deleted for good:")
        rows = {
            "audits": plan.audits,
            "batches of these": plan.batches,
            "claims": plan.claims,
            "scorings": plan.scorings,
            "rows of probabilities": plan.probability_rows,
            "documents that no other audit needs": plan.documents,
            "Idempotency-Keys of requests as old": plan.idempotency_keys,
        }
        for name, count in rows.items():
            console.print(f"  {count:>12,} {name}")
        for name in plan.partitions:
            console.print(f"  the table {name}")
        console.print(
            f"{_size(plan.dropped_bytes)} go back to the file system; about "
            f"{_size(plan.freed_bytes)} become free for new rows; reviews and policies stay"
        )
    if plan.kept_audits:
        console.print(
            "audits that are as old and stay, since the rest of their batch is not: "
            f"{plan.kept_audits:,}"
        )


def _asked() -> bool:
    console = messages_console()
    console.print("delete this for good? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    console.print("nothing was deleted")
    return False


def _run(it: Pruning) -> Pruned:
    total = it.plan.audits
    with progress_display() as display:
        try:
            return it.run(
                lambda deleted: display.show(
                    f"{deleted:,} of {total:,} audits deleted", deleted / total if total else None
                )
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "interrupted: what is deleted is deleted whole; the same command goes on"
            ) from None


def _print_object(plan: PrunePlan, done: Pruned | None) -> None:
    document = {
        "plan": {**asdict(plan), "before": plan.before.isoformat()},
        "pruned": None if done is None else asdict(done),
    }
    sys.stdout.write(json.dumps(document) + "\n")


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"
