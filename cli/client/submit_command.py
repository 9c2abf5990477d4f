"""`halldetect submit`: one file becomes one batch of the service."""

from __future__ import annotations

from cli.client.batch_report import print_document, report_end
from cli.client.batch_state import parse_submitted_batch
from cli.client.errors import BatchRefused
from cli.client.following import follow
from cli.client.service import Service
from cli.client.submission import send_batch
from cli.client.upload import open_upload
from cli.consoles import results_console, tell
from cli.option_texts import check_options
from halldetect.errors import InputError
from halldetect.settings import Settings
from halldetect.wording import counted

_EXIT_DONE = 0


def submit_file(
    source: str,
    settings: Settings,
    *,
    policy: str | None,
    priority: int | None,
    wait: bool,
    as_json: bool,
    fail_on_hallucinated: bool,
) -> int:
    """Upload a file as a batch and, if asked to, follow it to its end.

    Parameters
    ----------
    source : str
        JSONL file; ``-`` for standard input.
    settings : Settings
        Where the service is.
    policy, priority : optional
        For lines that have none.
    wait : bool
        Follow the batch and print what it came to.
    as_json : bool
        Print the service's description of the batch instead of text.
    fail_on_hallucinated : bool
        Tell by the exit code, after waiting, whether any response was flagged.

    Returns
    -------
    int
        See `report_end`; 0 without waiting.

    Raises
    ------
    InputError
        The file cannot be read or used, and each line at fault has been named; or an option.
    ServiceError
        The service cannot be reached, or failed.
    """
    check_options({"--policy": policy})
    with open_upload(source) as upload, Service.of(settings) as service:
        try:
            document = send_batch(service, upload, policy=policy, priority=priority)
        except BatchRefused as refused:
            raise _told(upload.name, refused) from None
        batch = parse_submitted_batch(document)
        accepted = f"batch {batch.id}: {counted(batch.total, 'audit')} accepted"
        if wait:
            document = follow(service, int(batch.id), accepted)
            return report_end(
                service, document, as_json=as_json, fail_on_hallucinated=fail_on_hallucinated
            )
    if as_json:
        print_document(document)
    else:
        console = results_console()
        console.print(accepted)
        console.print(f"  halldetect status {batch.id} --wait   follows it")
        console.print(f"  halldetect results {batch.id}         prints what is found, a line each")
        console.print(f"  halldetect cancel {batch.id}          stops it")
    return _EXIT_DONE


def _told(name: str, refused: BatchRefused) -> InputError:
    """Write down every line that is at fault, and return the error that sums them up."""
    for fault in refused.faults:
        tell(f"{name} line {fault.line}: {fault.message}")
    unlisted = refused.total_faults - len(refused.faults)
    are = "is" if unlisted == 1 else "are"
    more = f" ({unlisted:,} more {are} not listed)" if unlisted > 0 else ""
    lines = counted(refused.total_faults, "line")
    return InputError(f"{name}: nothing was stored, since {lines} cannot be used{more}")
