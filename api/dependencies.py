"""What routes work with: settings, database, wake-ups; and what they read from a request.

Pool sizes. Routes run in `THREADS` threads, and batches are validated and stored in `UPLOADS` more,
so that a few large uploads leave the threads to short requests. A thread holds one connection at
most, and nothing else holds any: `THREADS` + `UPLOADS` connections are enough, and no request ever
waits for one. A request that waits for a lock longer than `LOCK_SECONDS` gives its thread back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, cast

import anyio
from fastapi import Depends, Header, Path, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from api.back_pressure import WaitingLimits
from api.cursors import LARGEST_ID
from api.problems import Kind, Problem, not_found
from api.request_metrics import RequestMetrics
from api.request_rates import RequestRates
from api.upload_room import UploadRoom
from db.engine import make_engine, session_factory, transaction
from db.line import Stage
from halldetect.errors import InputError
from halldetect.logs import get_logger
from halldetect.record import text_fault
from halldetect.settings import Settings
from queues.celery_app import make_app
from queues.wake_ups import QueueUnavailable, WakeUps

THREADS = 16
UPLOADS = 2
LOCK_SECONDS = 30

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that lives as long as the process.

    Parameters
    ----------
    settings : Settings
        Limits, profile, addresses.
    engine : Engine
        Connections to Postgres.
    sessions : sessionmaker
        Opens sessions on them.
    wake_ups : WakeUps
        Tells workers that something waits.
    uploads : anyio.CapacityLimiter
        Of batches that are being validated and stored.
    upload_room : UploadRoom
        What uploads in progress may take on the disk.
    waiting_limits : WaitingLimits
        Refuses what would be too much.
    metrics : RequestMetrics
        Counts what this process does.
    request_rates : RequestRates
        Refuses what comes too often.
    """

    settings: Settings
    engine: Engine
    sessions: sessionmaker[Session]
    wake_ups: WakeUps
    uploads: anyio.CapacityLimiter
    upload_room: UploadRoom
    waiting_limits: WaitingLimits
    metrics: RequestMetrics
    request_rates: RequestRates

    @classmethod
    def of(cls, settings: Settings) -> Service:
        """Prepare what `settings` describe; no server is contacted yet.

        Raises
        ------
        InputError
            When an address is missing or is none.
        """
        if settings.database_url is None or settings.redis_url is None:
            raise InputError(
                "the API needs its servers: set DATABASE_URL and REDIS_URL, or start everything "
                "with `halldetect up`"
            )
        engine = make_engine(
            settings.database_url.get_secret_value(),
            pool_size=THREADS + UPLOADS,
            lock_seconds=LOCK_SECONDS,
        )
        wake_ups = WakeUps(make_app(settings.redis_url.get_secret_value(), "halldetect-api"))
        metrics = RequestMetrics()
        wake_ups.count_in(metrics.registry)
        return cls(
            settings,
            engine,
            session_factory(engine),
            wake_ups,
            anyio.CapacityLimiter(UPLOADS),
            UploadRoom(settings.spooled_bytes),
            WaitingLimits(settings.max_waiting_audits, settings.max_waiting_audits_per_key),
            metrics,
            RequestRates(settings.requests_per_minute),
        )

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open a transaction that is committed unless an error leaves the block.

        Raises
        ------
        DatabaseUnavailable
            When the server cannot be reached, at any point.
        """
        with transaction(self.sessions) as session:
            yield session

    def close(self) -> None:
        """Close all connections to Postgres."""
        self.engine.dispose()

    def wake(
        self,
        stage: Stage = Stage.EXTRACTION,
        *,
        batch_id: int | None = None,
        audit_id: int | None = None,
        reason: str = "submitted",
    ) -> None:
        """Wake a worker of a stage after the commit.

        Without the broker the work is stored all the same, and the sweeper wakes a worker later.
        """
        try:
            task_id = self.wake_ups.send(stage, batch_id=batch_id, audit_id=audit_id, reason=reason)
        except QueueUnavailable as error:
            _log.warning(
                "no worker was woken: the sweeper will do it",
                batch_id=batch_id,
                audit_id=audit_id,
                error=str(error),
            )
        else:
            _log.info(
                "sent a wake-up",
                stage=stage.value,
                reason=reason,
                batch_id=batch_id,
                audit_id=audit_id,
                sent_task_id=task_id,
            )

    def wake_rescoring(self, rescoring_id: int) -> None:
        """Wake a maintenance worker after the commit; without the broker the sweeper does it."""
        try:
            self.wake_ups.send_rescoring(rescoring_id, reason="submitted")
        except QueueUnavailable as error:
            _log.warning(
                "no worker was woken: the sweeper will do it",
                rescoring_id=rescoring_id,
                error=str(error),
            )


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]


def _idempotency_key(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            pattern=r"^[\x20-\x7e]+$",
            description="Any text of your own. Sent again with the same request, it returns the "
            "first answer instead of submitting twice.",
            examples=["evening-run-2026-03-01"],
        ),
    ] = None,
) -> str | None:
    if len(request.headers.getlist("Idempotency-Key")) > 1:
        raise Problem(422, Kind.INVALID_REQUEST, "Idempotency-Key is given twice: send one")
    return idempotency_key


IdempotencyKey = Annotated[str | None, Depends(_idempotency_key)]


def refuse_ambiguous_query(request: Request) -> None:
    """Refuse parameters that are given twice, or hold what no text column can.

    Raises
    ------
    Problem
        Naming the parameter.
    """
    pairs = request.query_params.multi_items()
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise Problem(
                422,
                Kind.INVALID_REQUEST,
                f"query {name[:64]}: is given {count} times; give it once",
            )
    for name, value in pairs:
        if fault := text_fault(value):
            raise Problem(422, Kind.INVALID_REQUEST, f"query {name[:64]}: {fault}")


def _no_query(request: Request) -> None:
    if request.query_params:
        names = ", ".join(sorted(request.query_params)[:5])
        raise Problem(
            422, Kind.INVALID_REQUEST, f"query {names[:64]}: this address takes no parameters"
        )


NoQuery = Depends(_no_query)
"""For routes without parameters: one that is given would be ignored."""


PathId = Annotated[
    str,
    Path(
        description="A whole number from 1, in digits alone. Nothing else is the id of anything.",
        # For the documentation: what does not match is not found, which is no fault of a parameter.
        json_schema_extra={"pattern": "^[1-9][0-9]{0,18}$"},
        examples=["17"],
    ),
]


def identity(text: str, what: str) -> int:
    """Read an id from a path.

    Parameters
    ----------
    text : str
        As it stands in the path.
    what : str
        Kind of thing, for the message.

    Raises
    ------
    Problem
        When no thing can have this id.
    """
    if not text.isascii() or not text.isdigit() or text.startswith("0"):
        raise not_found(f'{what} of this id: ids are whole numbers from 1, as in "17"')
    if len(text) > len(str(LARGEST_ID)) or int(text) > LARGEST_ID:
        raise not_found(f"{what} of this id: ids end at {LARGEST_ID}")
    return int(text)
