"""`halldetect status`: what the running stack, or a service of other processes, is doing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict

from cli.consoles import results_console, tell
from cli.stack.answers import NO_ANSWER, REDIS, redis_answers, unanswered
from cli.stack.observations import Observation, observe
from cli.stack.run_file import RunningStack, read_running_stack
from cli.stack.tables import address_lines, process_tables, service_tables
from halldetect.errors import UnavailableError
from halldetect.settings import Settings

_EXIT_RUNS, _EXIT_NONE = 0, 2


def show_stack(settings: Settings, *, as_json: bool) -> int:
    """Print the processes, lines and addresses of the stack in the home folder.

    Each part is asked whether it answers: a process that is there may do nothing.
    Where none runs, and DATABASE_URL names a database, the workers and lines of that service.

    Parameters
    ----------
    settings : Settings
        Names the home folder, and perhaps a database.
    as_json : bool
        Print JSON, with passwords in the addresses.

    Returns
    -------
    int
        0 when a stack or a service is there, 2 when none is.

    Raises
    ------
    StackError
        The stack belongs to another user.
    UnavailableError
        The database cannot be reached.
    """
    home = settings.home.expanduser().absolute()
    stack = read_running_stack(home)
    if stack is None and settings.database_url is not None:
        return _show_service(settings, settings.database_url.get_secret_value(), as_json=as_json)
    if stack is None:
        tell(f"no stack runs in {home}: start one with `halldetect up`")
        return _EXIT_NONE
    observation = observe(stack.database_url)
    silent = unanswered(stack, observation)
    if as_json:
        _write_json({**_stack_object(stack, silent), **_service_object(observation, silent)})
    else:
        console = results_console()
        console.print(process_tables(stack, observation, silent), "", sep="\n")
        for line in address_lines(stack):
            console.print(line, soft_wrap=True)
    return _EXIT_RUNS


def _show_service(settings: Settings, database_url: str, *, as_json: bool) -> int:
    observation = observe(database_url)
    if observation.fault is not None:
        raise UnavailableError(observation.fault)
    address = settings.redis_url
    is_there = address is None or redis_answers(address.get_secret_value())
    silent = {} if is_there else {REDIS: NO_ANSWER}
    if as_json:
        _write_json(_service_object(observation, silent))
    else:
        results_console().print(service_tables(observation, silent))
    return _EXIT_RUNS


def _write_json(value: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _stack_object(stack: RunningStack, silent: Mapping[str, str]) -> dict[str, object]:
    return {**stack.model_dump(mode="json"), "is_ready": stack.is_ready and not silent}


def _service_object(observation: Observation, silent: Mapping[str, str]) -> dict[str, object]:
    workers = [
        asdict(worker)
        | {
            "started_at": worker.started_at.isoformat(),
            "seen_at": worker.seen_at.isoformat(),
            "holds": observation.held.get(worker.name, 0),
        }
        for worker in observation.workers
    ]
    return {
        "queues": [asdict(depth) for depth in observation.depths],
        "audits_per_second": observation.audits_per_second,
        "workers": workers,
        "fault": observation.fault,
        "unanswered": dict(silent),
    }
