"""Ends the processes of a stack whose supervisor was killed, and never anybody else's."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil

from cli.stack import postgres
from cli.stack.addresses import POSTGRES, VALKEY
from cli.stack.run_file import RunningChild, read_last_stack

_SAME_MOMENT_SECONDS = 1.0
_PATIENCE_SECONDS = 20.0


def stop_leftovers(home: Path) -> list[str]:
    """End what a killed stack left running in `home`, servers last; return their names.

    A process is one of ours only if it has the recorded number and began at the recorded moment.
    """
    stack = read_last_stack(home)
    if stack is None:
        return []
    alive = [(child, process) for child in stack.children if (process := _process(child))]
    servers = [found for found in alive if found[0].name in (POSTGRES, VALKEY)]
    for group in ([found for found in alive if found not in servers], servers):
        _stop(group)
    return [child.name for child, _ in alive]


def _process(child: RunningChild) -> psutil.Process | None:
    if child.pid is None or child.created_at is None:
        return None
    try:
        process = psutil.Process(child.pid)
        is_ours = abs(process.create_time() - child.created_at) < _SAME_MOMENT_SECONDS
        return process if is_ours and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _stop(group: list[tuple[RunningChild, psutil.Process]]) -> None:
    for child, process in group:
        polite = postgres.STOP_SIGNAL if child.name == POSTGRES else signal.SIGTERM
        try:
            process.send_signal(polite)
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs([process for _, process in group], timeout=_PATIENCE_SECONDS)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=_PATIENCE_SECONDS)
