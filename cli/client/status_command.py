"""`halldetect status BATCH`: how a batch is doing."""

from __future__ import annotations

from cli.client.batch_report import print_document, report_end
from cli.client.batch_state import parse_batch_state
from cli.client.batch_tables import batch_table, running_audit
from cli.client.following import follow
from cli.client.service import Service
from cli.consoles import results_console
from halldetect.settings import Settings

_EXIT_DONE = 0


def show_batch(batch_id: int, settings: Settings, *, wait: bool, as_json: bool) -> int:
    """Print the counts of a batch, at once or when it is over.

    Parameters
    ----------
    batch_id : int
        Which.
    settings : Settings
        Where the service is.
    wait : bool
        Follow it to its end first.
    as_json : bool
        Print the service's description of it instead of a table.

    Returns
    -------
    int
        0, or that of `report_end` after waiting.

    Raises
    ------
    InputError
        There is no such batch.
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        if wait:
            document = follow(service, batch_id)
            return report_end(service, document, as_json=as_json, fail_on_hallucinated=False)
        document = service.batch(batch_id)
    if as_json:
        print_document(document)
    else:
        state = parse_batch_state(document)
        console = results_console()
        console.print(batch_table(state))
        if state.longest_running is not None:
            console.print(f"longest in work: {running_audit(state.longest_running)}")
    return _EXIT_DONE
