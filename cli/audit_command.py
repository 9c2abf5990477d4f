"""`halldetect audit --source --response`: one audit, printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cli.consoles import results_console
from cli.progress_display import ProgressDisplay, progress_display
from cli.text_input import STANDARD_INPUT, read_source, read_text
from halldetect.errors import InputError
from halldetect.scoring.verdict import Label
from halldetect.settings import Settings

if TYPE_CHECKING:
    from halldetect.auditor import Progress
    from halldetect.trail import AuditResult

EXIT_DONE = 0
EXIT_FLAGGED = 1


def audit_texts(
    source: str,
    response: str,
    settings: Settings,
    *,
    as_json: bool,
    verbose: bool,
    fail_on_hallucinated: bool,
) -> int:
    """Audit one response and print what was found.

    Parameters
    ----------
    source, response : str
        File names, ``-`` for standard input.
    settings : Settings
        Models and policy.
    as_json : bool
        Print the whole trail instead of the tables.
    verbose : bool
        Leave nothing out of the tables.
    fail_on_hallucinated : bool
        Tell by the exit code whether the response was flagged.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    InputError
        Naming the file that cannot be used.
    ModelError
        When a model is missing or broken.
    """
    if source == response == STANDARD_INPUT:
        raise InputError("--source and --response cannot both be standard input")
    limit = settings.max_characters
    texts = (
        read_source(source, max_characters=limit),
        read_text(response, max_characters=limit),
    )
    result = audit_with_progress(*texts, settings)
    if as_json:
        print_trail(result)
    else:
        from cli.render import print_result

        print_result(results_console(), result, verbose=verbose)
    flagged = fail_on_hallucinated and result.label is Label.HALLUCINATED
    return EXIT_FLAGGED if flagged else EXIT_DONE


def audit_with_progress(source: str, response: str, settings: Settings) -> AuditResult:
    """Load the models and audit one response, showing progress if it takes long.

    Raises
    ------
    InputError, ModelError, VerificationError
        See `halldetect.auditor.Auditor.audit`.
    """
    from halldetect.model_loading import load_auditor
    from halldetect.record import make_record

    record = make_record(source=source, response=response)
    with progress_display() as display:
        display.show("loading the models", None)
        auditor = load_auditor(settings, lambda progress: show_progress(display, progress))
        display.show("extracting claims", None)
        return auditor.audit(record)


def print_trail(result: AuditResult) -> None:
    """Print the whole trail as JSON, indented for a terminal."""
    from cli.result_json import trail_json

    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(trail_json(result, indent=indent) + "\n")


def show_progress(display: ProgressDisplay, progress: Progress) -> None:
    """Show how many pairs of an audit are verified."""
    if progress.total:
        text = f"verifying: {progress.done:,} of {progress.total:,} pairs"
        display.show(text, progress.done / progress.total)
