"""`halldetect up`: the whole service on one machine, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress

from cli.consoles import results_console, tell
from cli.stack.home import Home
from cli.stack.lock import exclusive_lock
from cli.stack.run_file import read_running_stack
from cli.stack.screen import screen
from cli.stack.stack import Stack
from cli.stack.stop_requests import stop_requests
from cli.stack.tables import addresses
from halldetect.settings import Settings

_EXIT_STOPPED, _EXIT_ALREADY_RUNNING = 0, 2


def run_up(settings: Settings, *, extraction_workers: int = 1, nli_workers: int = 1) -> int:
    """Start everything, show it until somebody asks to stop, and stop it; the data stays.

    Parameters
    ----------
    settings : Settings
        Home folder, ports, servers of your own, models.
    extraction_workers, nli_workers : int
        How many of each.

    Returns
    -------
    int
        0 once all has stopped; 2 when a stack runs in this home already.

    Raises
    ------
    InputError
        The API would let everybody in from other machines.
    UnavailableError
        A server that all depends on cannot be started or reached.
    """
    settings.asks_for_api_keys()  # which refuses to let everybody in
    home = Home(settings.home.expanduser().absolute())
    home.create()
    with exclusive_lock(home.lock_file) as is_ours:
        if not is_ours:
            return _already_running(home)
        with stop_requests() as requests, screen() as shown:
            stack = Stack(
                settings,
                home,
                shown,
                requests,
                extraction_workers=extraction_workers,
                nli_workers=nli_workers,
            )
            try:
                stack.run()
            finally:
                stack.stop()
            with suppress(OSError):
                shown.say(f"stopped; the data stays in {home.root}")
    return _EXIT_STOPPED


def _already_running(home: Home) -> int:
    stack = read_running_stack(home.root)
    if stack is None:
        tell(f"a stack is starting or stopping in {home.root}: wait, or choose another --home")
        return _EXIT_ALREADY_RUNNING
    tell(f"a stack runs in {home.root} already (process {stack.pid})")
    console = results_console()
    for label, address in addresses(stack):
        console.print(f"{label}: {address}", soft_wrap=True)
    return _EXIT_ALREADY_RUNNING
