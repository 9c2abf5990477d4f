"""`halldetect rescore`: score what was audited under another policy, and say what that changes."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cli.client.errors import ServiceError, ServiceUnavailable
from cli.comparison_tables import print_comparison
from cli.consoles import results_console
from cli.option_texts import check_options
from cli.options import LARGEST_ID
from cli.printable import printable, shortened
from cli.progress_display import progress_display
from cli.scoring_service import Scoring, ScoringService
from db.models import RescoringState
from halldetect.errors import InputError
from halldetect.record import parse_object
from halldetect.settings import Settings

_EXIT_DONE = 0
_SECONDS_BETWEEN_LOOKS = 0.25
_LARGEST_POLICY_FILE = 1_000_000
_OPTION_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Selected:
    """Which audits to score, as the options say; None does not filter.

    Parameters
    ----------
    ids : str, optional
        Numbers of audits, separated by commas.
    batch_id : int, optional
        Of this batch.
    label : str, optional
        With this label under their own policy.
    since, before : str, optional
        Days or moments of the submission.
    """

    ids: str | None = None
    batch_id: int | None = None
    label: str | None = None
    since: str | None = None
    before: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the selection as the service takes it.

        Raises
        ------
        InputError
            An option cannot be read.
        """
        selection = {
            "ids": None if self.ids is None else _ids(self.ids),
            "batch_id": None if self.batch_id is None else str(self.batch_id),
            "label": self.label,
            "submitted_from": None if self.since is None else _moment(self.since, "--since"),
            "submitted_before": None if self.before is None else _moment(self.before, "--before"),
        }
        return {name: value for name, value in selection.items() if value is not None}


def rescore_audits(
    selected: Selected,
    settings: Settings,
    *,
    policy: str | None,
    policy_file: Path | None,
    against: str | None,
    examples: int,
    as_json: bool,
) -> int:
    """Have completed audits scored under a policy, follow it, and print what it changes.

    Parameters
    ----------
    selected : Selected
        Which audits.
    settings : Settings
        Where the service is.
    policy : str or None
        Name of a policy that the service knows.
    policy_file : Path or None
        JSON of a policy that is stored first.
    against : str or None
        Policy to compare with; None takes each audit's own.
    examples : int
        Most audits of each list.
    as_json : bool
        Print the rescoring and the comparison as one JSON object.

    Returns
    -------
    int
        0.

    Raises
    ------
    InputError
        The options contradict each other, or name what is not there.
    ServiceError
        The service cannot be reached, or failed.
    """
    if (policy is None) == (policy_file is None):
        raise InputError("give either --policy NAME or --policy-file FILE")
    check_options({"--policy": policy, "--against": against})
    selection = selected.to_json()
    body = None if policy_file is None else _read_policy(policy_file)
    with ScoringService.of(settings) as service:
        name = policy or service.create_policy(body or b"").name
        scoring = _follow(service, service.submit_scoring(name, selection))
        if scoring.status is RescoringState.FAILED:
            raise ServiceError(f"{service.address}: rescoring {scoring.id} failed: {scoring.error}")
        report = service.comparison(scoring.id, against=against, examples=examples)
    if as_json:
        documents = {"scoring": scoring, "comparison": report}
        shown = {name: document.model_dump(mode="json") for name, document in documents.items()}
        sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
    else:
        print_comparison(results_console(), scoring, report)
    return _EXIT_DONE


def _follow(service: ScoringService, scoring: Scoring) -> Scoring:
    """Show how far a rescoring is until it is over; return how it ended."""
    number = scoring.id
    try:
        with progress_display() as display, service.saying_to(display.say):
            while not scoring.is_over:
                display.show(
                    f"{scoring.done:,} of {scoring.total:,} audits scored",
                    scoring.done / scoring.total if scoring.total else None,
                )
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                scoring = service.scoring(number)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped following; rescoring {number} goes on, and the same command again stores "
            "nothing twice"
        ) from None
    except ServiceUnavailable as error:
        raise ServiceUnavailable(
            f"{error}; rescoring {number} is stored, and the same command again stores nothing "
            "twice"
        ) from None
    return scoring


def _read_policy(path: Path) -> bytes:
    """Read the JSON of a policy; what it says is for the service to judge."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_POLICY_FILE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    if len(content) > _LARGEST_POLICY_FILE:
        raise InputError(f"{path} is longer than {_LARGEST_POLICY_FILE:,} bytes: it is no policy")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        parse_object(content, what="a policy")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return content


def _ids(text: str) -> list[str]:
    ids = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in ids if not _is_id(part)]
    if wrong or not ids:
        shown = shortened(printable((wrong or [text])[0]), _OPTION_CHARACTERS)
        raise InputError(
            f"--ids: {shown!r} is no audit; write numbers from 1 to {LARGEST_ID}, as 17,18"
        )
    return [part.lstrip("0") for part in ids]


def _is_id(text: str) -> bool:
    digits = text.lstrip("0")
    is_number = text.isascii() and text.isdigit() and 0 < len(digits) <= len(str(LARGEST_ID))
    return is_number and int(digits) <= LARGEST_ID


def _moment(text: str, option: str) -> str:
    """Read a day, which begins at midnight UTC, or a moment, UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{option}: {text!r} is no time; write 2026-03-01 or 2026-03-01T12:00:00+01:00"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
