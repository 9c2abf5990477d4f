"""`halldetect doctor`: whether what is stored is whole, and whether the work goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from sqlalchemy import Engine

from cli.consoles import results_console
from cli.database import connect_database, database_address, redis_address
from cli.printable import printable
from cli.progress_display import progress_display
from cli.stack.answers import unanswered
from cli.stack.children import ChildState
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.observations import observe
from cli.stack.run_file import read_running_stack
from db.doctor import checks, failed_audits
from db.engine import session_factory
from db.findings import Finding
from db.migrate import current_revision
from db.schema_version import version_fault
from halldetect.errors import UnavailableError
from halldetect.settings import Settings
from halldetect.wording import counted
from queues.celery_app import make_app
from queues.names import Queue, queue_of
from queues.wake_ups import WakeUps

_EXIT_CLEAN, _EXIT_FINDINGS = 0, 1


def examine(settings: Settings, *, as_json: bool) -> int:
    """Check a live database, its broker and the stack that runs here, changing nothing.

    Parameters
    ----------
    settings : Settings
        Where they are.
    as_json : bool
        Print one JSON object instead of text.

    Returns
    -------
    int
        0 when all is well, 1 when something was found.

    Raises
    ------
    UnavailableError
        The database cannot be reached.
    """
    with connect_database(settings) as engine:
        findings = _outdated(engine)
        failed = None
        if not findings:
            findings = _run_checks(engine)
            failed = failed_audits(session_factory(engine))
    findings += [*_unreachable_broker(settings), *_idle_parts(settings)]
    if as_json:
        report = {
            "is_clean": not findings,
            "failed_audits": failed,
            "findings": [asdict(finding) for finding in findings],
        }
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        _print(results_console(), findings, failed)
    return _EXIT_FINDINGS if findings else _EXIT_CLEAN


def _outdated(engine: Engine) -> list[Finding]:
    fault = version_fault(current_revision(engine))
    if fault is None:
        return []
    problem, _, mend = fault.partition(": ")
    return [Finding("schema", f"{problem}; nothing else of it was checked", mend)]


def _run_checks(engine: Engine) -> list[Finding]:
    every = list(checks(session_factory(engine), queue_of, Queue.MAINTENANCE))
    findings: list[Finding] = []
    with progress_display() as display:
        for number, (name, check) in enumerate(every):
            display.show(f"checking {name.replace('_', ' ')}", number / len(every))
            findings += check()
    return findings


def _unreachable_broker(settings: Settings) -> list[Finding]:
    try:
        WakeUps(make_app(redis_address(settings), "halldetect-doctor")).queued(Queue.EXTRACTION)
    except UnavailableError as error:
        finding = Finding(
            "broker",
            str(error),
            "start it, or set REDIS_URL; what waits stays in the database and is woken afterwards",
        )
        return [finding]
    return []


def _idle_parts(settings: Settings) -> list[Finding]:
    """Ask the processes of the stack in the home folder, if it is the one that was checked."""
    home = settings.home.expanduser().absolute()
    try:
        stack = read_running_stack(home)
    except StackError:  # somebody else's
        return []
    if stack is None or stack.database_url != database_address(settings):
        return []
    idle = unanswered(stack, observe(stack.database_url))
    for child in stack.children:
        if child.state is ChildState.RESTARTING:
            idle[child.name] = "ends again and again"
    if not idle:
        return []
    finding = Finding(
        "processes",
        "parts of the running stack do not do their work",
        f"their logs in {Home(home).logs} may say why; a process that does not go on can be "
        "killed (`kill -KILL`, with the number that `halldetect status` shows): `halldetect up` "
        "starts it again",
        len(idle),
        tuple(f"{name} {matter}" for name, matter in idle.items()),
    )
    return [finding]


def _print(console: Console, findings: Sequence[Finding], failed: int | None) -> None:
    for finding in findings:
        console.print(f"{finding.check} ({finding.count:,}): {printable(finding.problem)}")
        if finding.examples:
            more = ", …" if finding.count > len(finding.examples) else ""
            console.print(f"    {printable(', '.join(finding.examples))}{more}")
        console.print(f"    to mend it: {finding.mend}")
    if failed:
        have = "has" if failed == 1 else "have"
        console.print(f"{counted(failed, 'audit')} {have} failed: `halldetect failed` says why")
    if not findings:
        console.print("all is well")
