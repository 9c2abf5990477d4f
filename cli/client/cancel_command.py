"""`halldetect cancel`: nothing more of a batch is begun."""

from __future__ import annotations

from cli.client.batch_report import print_document
from cli.client.batch_state import parse_batch_state
from cli.client.service import Service
from cli.consoles import results_console
from halldetect.settings import Settings
from halldetect.wording import counted

_EXIT_DONE = 0


def cancel_batch(batch_id: int, settings: Settings, *, as_json: bool) -> int:
    """Cancel what is waiting of a batch; what is finished stays.

    Parameters
    ----------
    batch_id : int
        Which.
    settings : Settings
        Where the service is.
    as_json : bool
        Print the service's description of it instead of a sentence.

    Returns
    -------
    int
        0, also when it was over already.

    Raises
    ------
    InputError
        There is no such batch.
    ServiceError
        The service cannot be reached, or failed.
    """
    with Service.of(settings) as service:
        document = service.cancel(batch_id)
    if as_json:
        print_document(document)
        return _EXIT_DONE
    state = parse_batch_state(document)
    if state.cancelled:
        kept = state.completed + state.failed
        results = "the result of 1 stays" if kept == 1 else f"the results of {kept:,} stay"
        sentence = f"{counted(state.cancelled, 'audit')} cancelled, {results}"
    else:
        sentence = "was over already, so that nothing is cancelled"
    results_console().print(f"batch {state.id}: {sentence}")
    return _EXIT_DONE
