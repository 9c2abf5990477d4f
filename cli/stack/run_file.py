"""The record of a running stack: which processes, and the addresses to reach them at."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from cli.stack.children import ChildState
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.lock import is_locked
from cli.stack.passwords import write_private


class RunningChild(BaseModel):
    """One process of the stack.

    Parameters
    ----------
    name : str
        ``postgres``, ``api``, ``nli`` and so on.
    state : ChildState
        What the supervisor last knew of it.
    pid : int or None
        Its process id; None while it does not run.
    created_at : float or None
        When the system says that this process began: numbers are used again, moments are not.
    log : Path
        Where it writes.
    metrics_url : str or None
        Where Prometheus reads its figures; None for what has none.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    state: ChildState
    pid: int | None
    created_at: float | None
    log: Path
    metrics_url: str | None = None


class RunningStack(BaseModel):
    """A stack that runs, as its supervisor wrote it down.

    Parameters
    ----------
    pid : int
        The supervisor's process id: SIGTERM to it stops the stack.
    started_at : datetime
        When it began, in UTC.
    home : Path
        Data and logs.
    api_url, flower_url, database_url, redis_url : str
        The addresses, passwords included.
    children : tuple of RunningChild
        In the order of their start.
    """

    model_config = ConfigDict(frozen=True)

    pid: int
    started_at: datetime
    home: Path
    api_url: str
    flower_url: str
    database_url: str
    redis_url: str
    children: tuple[RunningChild, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether every process is up and does its work."""
        return bool(self.children) and all(
            child.state is ChildState.RUNNING for child in self.children
        )


def write_run_file(stack: RunningStack) -> None:
    """Keep `stack` in its home, for its owner alone: the addresses hold passwords."""
    write_private(Home(stack.home).run_file, stack.model_dump_json(indent=2))


def read_running_stack(home: Path) -> RunningStack | None:
    """Return the stack that runs in `home`; None if none does, whatever a killed one left.

    Raises
    ------
    StackError
        The stack belongs to another user.
    """
    try:
        return read_last_stack(home) if is_locked(Home(home).lock_file) else None
    except PermissionError as error:
        raise StackError(
            f"{error.filename} belongs to another user, and so does the stack in {home}"
        ) from None


def read_last_stack(home: Path) -> RunningStack | None:
    """Return the stack that the run file tells of, whether it still runs or was killed."""
    try:
        return RunningStack.model_validate_json(Home(home).run_file.read_bytes())
    except (FileNotFoundError, ValidationError):  # of another version, or none yet
        return None
