"""`halldetect demo`: the service at work on answers whose faults are known."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cli.client.batch_state import parse_batch_state, parse_submitted_batch
from cli.client.following import follow
from cli.client.service import Service
from cli.client.submission import send_batch
from cli.client.upload import open_upload
from cli.consoles import results_console, tell
from cli.demo_pairs import PAIRS_FILE, findings, load_pairs
from cli.demo_report import print_demo, where_to_look
from cli.demo_stack import DemoStack, demo_home, demo_stack
from cli.result_json import trail_json
from cli.stack.tables import addresses
from db.trails import StoredAudit
from halldetect.errors import HallDetectError
from halldetect.settings import ExtractorBackend, load_settings

_EXIT_DONE, _EXIT_FAILED = 0, 2


def run_demo(extractor: ExtractorBackend, *, keep: bool, as_json: bool) -> int:
    """Start the service, submit the shipped pairs, and say whether the planted faults were found.

    The service has a home folder of its own, so that the demo leaves the user's alone.

    Parameters
    ----------
    extractor : ExtractorBackend
        Who proposes claims.
    keep : bool
        Leave the service running, until Ctrl-C, for a look around.
    as_json : bool
        Print the trails, one a line, and nothing else.

    Returns
    -------
    int
        2 if an audit failed, else 0, whatever was found.

    Raises
    ------
    StackError, ServiceError
        The service cannot be started or fails.
    ModelError
        A model is missing or broken.
    """
    home = demo_home(load_settings())
    with demo_stack(home, extractor) as stack:
        for label, address in addresses(stack.running):
            tell(f"{label}: {address}")
        document, results = _audit(stack.running.api_url, home)
        state = parse_batch_state(document)
        _tell_other_extractor(extractor, results)
        if as_json:
            sys.stdout.writelines(trail_json(result) + "\n" for result in results)
        else:
            console = results_console()
            print_demo(console, state, findings(load_pairs(), results))
            where_to_look(console, stack.running, state.id, keeps=keep or not stack.is_ours)
        sys.stdout.flush()
        if keep:
            _keep(stack)
    return _EXIT_FAILED if state.failed else _EXIT_DONE


def _audit(api_url: str, home: Path) -> tuple[dict[str, object], Sequence[StoredAudit]]:
    """Submit the pairs, follow them to the end, and return the batch and its results."""
    with Service(api_url) as service, open_upload(str(PAIRS_FILE)) as upload:
        batch = parse_submitted_batch(send_batch(service, upload, policy=None, priority=None))
        tell(f"batch {batch.id}: {batch.total} answers submitted")
        try:
            document = follow(service, int(batch.id))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; what is done stays in {home}") from None
        with service.results(int(batch.id), with_matrix=False) as pieces:
            lines = b"".join(pieces).splitlines()
    if len(lines) != batch.total:
        raise HallDetectError(f"of {batch.total} results only {len(lines)} came")
    return document, [StoredAudit.model_validate(json.loads(line)) for line in lines]


def _tell_other_extractor(wanted: ExtractorBackend, results: Sequence[StoredAudit]) -> None:
    """Say so if the demo that runs already has another extractor than the one asked for."""
    used = {result.models["extractor"]["backend"] for result in results if result.models}
    if used and used != {wanted.value}:
        tell(
            f"the demo that runs already extracts by {', '.join(sorted(used))}, not by "
            f"{wanted.value}: stop it first to have the other"
        )


def _keep(stack: DemoStack) -> None:
    if not stack.is_ours:
        return
    tell("the service goes on until Ctrl-C")
    try:
        stack.wait()
    except KeyboardInterrupt:
        tell("stopping the service; its data stays")
