"""Workers as they last reported: who lives, what it has loaded, what it has done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta

from sqlalchemy import delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.leases import expire
from db.models import WorkerRow, WorkerState
from db.storable_texts import storable_error

# Three missed reports: lost, stopped, or cut off.
LIVE_SECONDS = 45
# Beside the counters, and none of them: it grows and shrinks.
_UNSWEPT = "unswept_seconds"


@dataclass(frozen=True, slots=True)
class WorkerCounters:
    """What a worker has done since it started.

    Parameters
    ----------
    audits : int
        Audits it finished its stage of.
    pairs, batches : int
        Pairs and forward passes of the encoder.
    tokens, padded_tokens, budget_tokens : int
        Tokens of the pairs; the same with padding; and what the batches had room for.
    output_tokens : int
        Tokens that the extractor wrote.
    busy_seconds : float
        Time in the models.
    """

    audits: int = 0
    pairs: int = 0
    batches: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    budget_tokens: int = 0
    output_tokens: int = 0
    busy_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """One worker process.

    `unswept_seconds` is how long its last sweep was ago when it reported, or its start if there was
    none; None where it does no sweeps.
    """

    name: str
    queues: list[str]
    pid: int
    host: str
    state: WorkerState
    error: str | None
    models: list[str]
    started_at: datetime
    seen_at: datetime
    counters: WorkerCounters = field(default_factory=WorkerCounters)
    unswept_seconds: float | None = None


def register(session: Session, name: str, *, queues: Sequence[str], pid: int, host: str) -> None:
    """Report a worker that starts; what an earlier process of that name said is replaced."""
    values = {
        "queues": list(queues),
        "pid": pid,
        "host": host,
        "state": WorkerState.LOADING,
        "error": None,
        "models": [],
        "counters": {},
        "started_at": func.now(),
        "seen_at": func.now(),
    }
    session.execute(
        insert(WorkerRow)
        .values(name=name, **values)
        .on_conflict_do_update(index_elements=["name"], set_=values)
    )


def heartbeat(
    session: Session,
    name: str,
    *,
    state: WorkerState,
    error: str | None,
    models: Sequence[str],
    counters: WorkerCounters,
    unswept_seconds: float | None = None,
) -> bool:
    """Report that a worker lives; return False when it must register (anew) first."""
    figures = asdict(counters)
    if unswept_seconds is not None:
        figures[_UNSWEPT] = unswept_seconds
    reported = session.scalar(
        update(WorkerRow)
        .where(WorkerRow.name == name)
        .values(
            state=state,
            error=None if error is None else storable_error(error),
            models=list(models),
            counters=figures,
            seen_at=func.now(),
        )
        .returning(WorkerRow.name)
        .execution_options(synchronize_session=False)
    )
    return reported is not None


def end_predecessors(
    session: Session, name: str, *, host: str, is_running: Callable[[int], bool]
) -> None:
    """Free at once what earlier processes of a worker's node held, if they run no more.

    Parameters
    ----------
    name : str
        The worker, as ``node/process``.
    host : str
        Where it runs: of processes elsewhere nothing is known.
    is_running : callable
        Tells whether the process of that id runs on this host.
    """
    node = name.partition("/")[0]
    rows = session.scalars(
        select(WorkerRow).where(
            WorkerRow.host == host,
            func.split_part(WorkerRow.name, "/", 1) == node,
            WorkerRow.name != name,
        )
    ).all()
    for row in rows:
        if not is_running(row.pid):
            expire(session, row.name)
            unregister(session, row.name)


def unregister(session: Session, name: str) -> None:
    """Forget a worker that stops."""
    session.execute(delete(WorkerRow).where(WorkerRow.name == name))


def live_workers(session: Session, *, queue: str | None = None) -> list[LiveWorker]:
    """Return the workers that reported lately, by name; those of one queue only, if named."""
    statement = select(WorkerRow).where(WorkerRow.seen_at > _deadline()).order_by(WorkerRow.name)
    if queue is not None:
        statement = statement.where(literal(queue) == WorkerRow.queues.any_())
    return [_live_worker(row) for row in session.scalars(statement)]


def forget_lost(session: Session) -> None:
    """Delete the rows of workers that no longer report."""
    session.execute(delete(WorkerRow).where(WorkerRow.seen_at <= _deadline()))


def _live_worker(row: WorkerRow) -> LiveWorker:
    return LiveWorker(
        name=row.name,
        queues=row.queues,
        pid=row.pid,
        host=row.host,
        state=row.state,
        error=row.error,
        models=row.models,
        started_at=row.started_at,
        seen_at=row.seen_at,
        counters=_known_counters(row.counters),
        unswept_seconds=row.counters.get(_UNSWEPT),
    )


def _known_counters(figures: Mapping[str, float]) -> WorkerCounters:
    """Return what this version knows of the figures; a worker of another may report others."""
    known = {counter.name for counter in fields(WorkerCounters)}
    return WorkerCounters(**{name: figures[name] for name in known & figures.keys()})  # type: ignore[arg-type]


def _deadline() -> object:
    return func.now() - timedelta(seconds=LIVE_SECONDS)
