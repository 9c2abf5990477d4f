"""`halldetect status`: what the running stack is doing."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from cli.consoles import results_console, tell
from cli.stack.observations import Observation, observe
from cli.stack.run_file import RunningStack, read_running_stack
from cli.stack.tables import stack_tables
from halldetect.settings import Settings

_EXIT_RUNS, _EXIT_NONE = 0, 2


def show_stack(settings: Settings, *, as_json: bool) -> int:
    """Print the processes, lines and addresses of the stack in the home folder.

    Parameters
    ----------
    settings : Settings
        Names the home folder.
    as_json : bool
        Print JSON, with passwords in the addresses.

    Returns
    -------
    int
        0 when a stack runs, 2 when none does.

    Raises
    ------
    StackError
        The stack belongs to another user.
    """
    home = settings.home.expanduser().absolute()
    stack = read_running_stack(home)
    if stack is None:
        tell(f"no stack runs in {home}: start one with `halldetect up`")
        return _EXIT_NONE
    observation = observe(stack.database_url)
    if as_json:
        sys.stdout.write(json.dumps(_as_object(stack, observation), indent=2) + "\n")
    else:
        results_console().print(stack_tables(stack, observation))
    return _EXIT_RUNS


def _as_object(stack: RunningStack, observation: Observation) -> dict[str, object]:
    workers = [
        asdict(worker)
        | {"started_at": worker.started_at.isoformat(), "seen_at": worker.seen_at.isoformat()}
        for worker in observation.workers
    ]
    return {
        **stack.model_dump(mode="json"),
        "is_ready": stack.is_ready,
        "queues": [asdict(depth) for depth in observation.depths],
        "audits_per_second": observation.audits_per_second,
        "workers": workers,
        "fault": observation.fault,
    }
