"""`halldetect retry`: failed audits wait for a worker again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cli.client.answers import Answer, read_answer
from cli.client.service import Service
from cli.consoles import results_console, tell
from halldetect.errors import InputError
from halldetect.settings import Settings
from halldetect.wording import counted

_EXIT_DONE, _EXIT_REFUSED = 0, 2
_read = partial(read_answer, about="what is tried again")


class _RetriedAudit(Answer):
    id: str
    status: str


class _RetriedBatch(Answer):
    id: str
    retried: int
    queued: int
    extracted: int


def retry_audits(audit_ids: Sequence[int], settings: Settings) -> int:
    """Put failed audits back into the line, each for itself.

    Parameters
    ----------
    audit_ids : sequence of int
        Which.
    settings : Settings
        Where the service is.

    Returns
    -------
    int
        0 when all of them wait again, 2 when any is not there or had not failed.

    Raises
    ------
    ServiceError
        The service cannot be reached, or failed.
    """
    code = _EXIT_DONE
    console = results_console()
    with Service.of(settings) as service:
        for audit_id in audit_ids:
            try:
                audit = _read(_RetriedAudit, service.retry_audit(audit_id))
            except InputError as error:
                tell(str(error))
                code = _EXIT_REFUSED
            else:
                console.print(f"audit {audit.id}: {_wait(audit.status)}")
    return code


def retry_failed_of(batch_id: int, settings: Settings) -> int:
    """Put all failed audits of a batch back into the line.

    Returns
    -------
    int
        0.

    Raises
    ------
    InputError
        There is no such batch, or none of it has failed.
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        batch = _read(_RetriedBatch, service.retry_batch(batch_id))
    wait = "waits" if batch.retried == 1 else "wait"
    results_console().print(
        f"batch {batch.id}: {counted(batch.retried, 'audit')} {wait} again "
        f"(for extraction {batch.queued:,}, for verification {batch.extracted:,}); "
        f"`halldetect status {batch.id} --wait` follows the batch"
    )
    return _EXIT_DONE


def _wait(status: str) -> str:
    kept = "the verification of its claims" if status == "extracted" else "its claims"
    return f"waits again, for {kept}"
