"""From a spooled upload to a stored batch: every line is checked, and all are stored or none."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import Response
from sqlalchemy.orm import Session

from api.dependencies import Service
from api.idempotency import Repeatable
from api.problems import Kind, LineError, Problem
from api.records import read_record
from api.schemas import SubmittedBatch, UploadOptions
from api.uploads import Spool
from db.engine import wait_for_locks
from db.submission import BatchAccepted, BatchRefused, BatchUpload
from halldetect.errors import InputError, LimitError
from halldetect.logs import get_logger
from halldetect.record import Record, RecordError, jsonl_lines
from halldetect.settings import Settings
from halldetect.wording import counted

_log = get_logger(__name__)


def store_batch(
    service: Service, spool: Spool, options: UploadOptions, request: Repeatable
) -> Response:
    """Store an upload as a batch in one transaction, then wake a worker.

    Raises
    ------
    Problem
        When any line is at fault; it lists the lines. Or when too much waits already.
    LimitError
        When there are too many lines.
    """
    with service.transaction() as session:
        # For another upload of the same sources, which is not sent again for that.
        wait_for_locks(session)
        answered = request.first_answer(session)
        if answered is not None:
            return answered
        service.waiting_limits.look(session, request.api_key_id)
        batch = _store_lines(session, service.settings, spool, options, request.api_key_id)
        service.waiting_limits.admit(batch.total, request.api_key_id)
        answer = SubmittedBatch(id=str(batch.batch_id), total=batch.total)
        response = request.accepted(session, f"/v1/batches/{batch.batch_id}", answer)
    _log.info(
        "batch submitted",
        batch_id=batch.batch_id,
        audits=batch.total,
        api_key_id=request.api_key_id,
    )
    service.wake(batch_id=batch.batch_id)
    return response


def _store_lines(
    session: Session,
    settings: Settings,
    spool: Spool,
    options: UploadOptions,
    api_key_id: int | None,
) -> BatchAccepted:
    columns: dict[int, int] = {}  # of the errors that will be listed
    upload = BatchUpload(
        session,
        default_policy=options.policy or settings.policy_name,
        max_errors=settings.max_listed_errors,
        api_key_id=api_key_id,
    )
    with upload:
        for number, line in _lines(spool, settings):
            try:
                upload.add(number, _record(line, settings, options))
            except InputError as error:
                upload.refuse(number, str(error))
                column = error.column if isinstance(error, RecordError) else None
                if column is not None and len(columns) < settings.max_listed_errors:
                    columns[number] = column
        outcome = upload.finish()
    if isinstance(outcome, BatchRefused):
        raise _refused(outcome, columns)
    return outcome


def _lines(spool: Spool, settings: Settings) -> Iterator[tuple[int, bytes]]:
    physical = _bounded(spool.lines(settings.max_body_bytes), settings.max_batch_lines)
    return jsonl_lines(physical)


def _bounded(lines: Iterator[bytes], limit: int) -> Iterator[bytes]:
    for number, line in enumerate(lines, start=1):
        if number > limit:
            raise LimitError(
                f"the batch has more than {limit:,} lines (HALLDETECT_MAX_BATCH_LINES): send it "
                "in parts"
            )
        yield line


def _record(line: bytes, settings: Settings, options: UploadOptions) -> Record:
    if len(line) > settings.max_body_bytes:
        raise LimitError(
            f"has more than {settings.max_body_bytes:,} bytes (HALLDETECT_MAX_BODY_BYTES)"
        )
    record = read_record(line, settings, options.unknown_fields)
    if options.priority != record.priority and "priority" not in record.model_fields_set:
        return record.model_copy(update={"priority": options.priority})
    return record


def _refused(outcome: BatchRefused, columns: dict[int, int]) -> Problem:
    faults = [
        LineError(line=error.line, column=columns.get(error.line), message=error.message)
        for error in outcome.errors
    ]
    listed = "" if outcome.total_errors == len(faults) else f", the first {len(faults):,} listed"
    return Problem(
        422,
        Kind.BATCH_REFUSED,
        f"{counted(outcome.total_errors, 'error')} in the upload{listed}: correct the lines and "
        "send all of it again",
        members={
            "errors": [fault.model_dump(exclude_none=True) for fault in faults],
            "total_errors": outcome.total_errors,
        },
    )
