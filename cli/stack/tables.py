"""A running stack as tables: its processes, the lines before them, and where to find it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from sqlalchemy import make_url

from cli.printable import printable
from cli.stack.children import ChildState
from cli.stack.observations import Observation
from cli.stack.run_file import RunningStack
from db.queue_depth import QueueDepth
from db.workers import LiveWorker
from halldetect.wording import counted

_STATE_STYLES = {
    ChildState.WAITING: "dim",
    ChildState.STARTING: "yellow",
    ChildState.RUNNING: "green",
    ChildState.RESTARTING: "bold red",
    ChildState.STOPPING: "yellow",
    ChildState.STOPPED: "dim",
}
_STAGE_DOES = {"extraction": "claims to be extracted", "verification": "claims to be verified"}


def stack_tables(
    stack: RunningStack, observation: Observation, silent: Mapping[str, str]
) -> RenderableType:
    """Return everything there is to see of `stack`; `silent` is what is the matter with parts."""
    return Group(process_tables(stack, observation, silent), Text(), _addresses(stack))


def process_tables(
    stack: RunningStack, observation: Observation, silent: Mapping[str, str]
) -> RenderableType:
    """Return what the processes of `stack` do, without its addresses; see `stack_tables`."""
    ours = [observation.worker(child.pid) for child in stack.children]
    others = [worker for worker in observation.workers if worker not in ours]
    parts: list[RenderableType] = [_processes(stack, observation, silent), Text()]
    names = {child.name for child in stack.children}
    parts += [_outside(name, silent[name]) for name in silent if name not in names]
    if others:
        parts += [workers_table(others, observation), Text()]
    return Group(*parts, _lines(observation))


def service_tables(observation: Observation, silent: Mapping[str, str]) -> RenderableType:
    """Return the workers and the lines of a service whose processes others started."""
    outside = [_outside(name, reason) for name, reason in silent.items()]
    workers = workers_table(observation.workers, observation)
    return Group(workers, Text(), *outside, _lines(observation))


def workers_table(workers: Sequence[LiveWorker], observation: Observation) -> Table:
    """Return workers wherever they run; one that was drained is not among them any more."""
    table = Table(box=None, pad_edge=False)
    for column in ("worker", "host", "queues", "state", "holds", "models"):
        right = column == "holds"
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for worker in workers:
        table.add_row(
            printable(worker.name.partition("/")[0]),
            printable(worker.host),
            ", ".join(worker.queues),
            worker.state.value,
            f"{observation.held.get(worker.name, 0):,}",
            _worker(worker),
        )
    return table


def addresses(stack: RunningStack) -> Iterator[tuple[str, str]]:
    """Yield what can be reached and where, for people to read: servers without their passwords."""
    yield "API", f"{stack.api_url}/docs"
    yield "Flower", stack.flower_url
    yield "Postgres", without_password(stack.database_url)
    yield "Redis", without_password(stack.redis_url)
    for child in stack.children:
        if child.metrics_url is not None:
            yield f"metrics of {child.name}", child.metrics_url
    yield "data and logs", str(stack.home)


def address_lines(stack: RunningStack) -> Iterator[str]:
    """Yield the addresses as lines, to be printed whole."""
    named = list(addresses(stack))
    width = max(len(label) for label, _ in named)
    for label, address in named:
        yield f"{label:{width}} {address}"


def without_password(url: str) -> str:
    """Return `url` with stars for its password."""
    return make_url(url).render_as_string(hide_password=True)


def numbers(observation: Observation) -> str:
    """Return the lines and the speed in one line of text."""
    if observation.fault is not None:
        return observation.fault
    lines = [
        f"{depth.stage.value}: {depth.waiting:,} waiting, {depth.running:,} running"
        for depth in observation.depths
    ]
    return "; ".join([*lines, _speed(observation)])


def _outside(name: str, reason: str) -> Text:
    return Text(f"{name} {reason}", style="bold red")


def _processes(stack: RunningStack, observation: Observation, silent: Mapping[str, str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("process", "state", "pid", "models"):
        table.add_column(column, justify="right" if column == "pid" else "left", overflow="fold")
    for child in stack.children:
        table.add_row(
            child.name,
            Text(silent[child.name], style="bold red")
            if child.name in silent
            else Text(child.state.value, style=_STATE_STYLES[child.state]),
            str(child.pid or ""),
            _worker(observation.worker(child.pid)),
        )
    return table


def _worker(worker: LiveWorker | None) -> Text:
    """Return the models that a worker has loaded and what it has done, or what it lacks."""
    if worker is None:
        return Text()
    if worker.error is not None:
        return Text(f"{worker.state.value}: {printable(worker.error)}", style="red")
    done = counted(worker.counters.audits, "audit") if worker.counters.audits else ""
    models = printable(", ".join(worker.models))
    return Text(" · ".join(part for part in (models, done) if part) or worker.state.value)


def _lines(observation: Observation) -> RenderableType:
    if observation.fault is not None:
        return Text(printable(observation.fault), style="red")
    table = Table(box=None, pad_edge=False)
    for column in ("in line", "waiting", "running", "oldest"):
        table.add_column(column, justify="left" if column == "in line" else "right")
    for depth in observation.depths:
        table.add_row(
            _STAGE_DOES[depth.stage.value],
            f"{depth.waiting:,}",
            f"{depth.running:,}",
            _oldest(depth),
        )
    return Group(table, Text(_speed(observation)))


def _oldest(depth: QueueDepth) -> str:
    return "" if depth.oldest_seconds is None else f"{depth.oldest_seconds:,.0f} s"


def _speed(observation: Observation) -> str:
    return f"{observation.audits_per_second:.2f} audits/s over the last minute"


def _addresses(stack: RunningStack) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for label, address in addresses(stack):
        table.add_row(label, Text(address))
    return table
