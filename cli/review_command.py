"""`halldetect review`: a walk over the flagged claims of a batch, one after the other."""

from __future__ import annotations

import getpass
import sys
from collections import Counter

from rich.console import Console

from cli.consoles import results_console
from cli.review_keys import Key, read_key, verdict_of
from cli.review_screen import claim_screen, summary_table
from cli.review_service import FlaggedClaim, FlaggedPage, ReviewService
from db.reviews import reviewer_fault
from halldetect.errors import InputError
from halldetect.settings import Settings

_EXIT_DONE = 0


def review_batch(batch_id: int, settings: Settings, *, reviewer: str | None) -> int:
    """Show each flagged claim that the reviewer has not reviewed, and store what is said of it.

    Parameters
    ----------
    batch_id : int
        Which.
    settings : Settings
        Where the service is.
    reviewer : str or None
        Who; None takes the login name.

    Returns
    -------
    int
        0: every claim was shown, or the reviewer had enough.

    Raises
    ------
    InputError
        There is no such batch, nobody knows who reviews, or nobody can review under that name.
    ServiceError
        The service cannot be reached, or failed; what was said before is stored.
    """
    name = _reviewer(reviewer)
    console = results_console()
    with ReviewService.of(settings) as service:
        try:
            said = _walk(service, console, batch_id, name)
            if not said[Key.QUIT]:
                console.print(f"batch {batch_id}: that is all there is to review")
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "interrupted: what was said is stored, and the same command goes on"
            ) from None
        console.print()
        console.print(_this_time(said))
        console.print(summary_table(service.review_summary(batch_id)))
    return _EXIT_DONE


def _walk(service: ReviewService, console: Console, batch_id: int, reviewer: str) -> Counter[Key]:
    """Go from claim to claim until there is none or the reviewer quits; count what was said."""
    said: Counter[Key] = Counter()
    page = _next(service, batch_id, reviewer, cursor=None)
    while page.items:
        flagged = page.items[0]
        number = page.reviewed + said[Key.SKIP] + 1
        console.print(claim_screen(flagged, number, page.flagged))
        key = _answer(console)
        said[key] += 1
        if key is Key.QUIT:
            break
        _store(service, flagged, reviewer, key)
        if page.next_cursor is None:
            break
        page = _next(service, batch_id, reviewer, cursor=page.next_cursor)
    return said


def _next(
    service: ReviewService, batch_id: int, reviewer: str, *, cursor: str | None
) -> FlaggedPage:
    """Ask for one claim at a time: what the reviewer says elsewhere meanwhile counts, too."""
    return service.flagged_claims(batch_id, reviewer, cursor=cursor, limit=1)


def _answer(console: Console) -> Key:
    while (key := read_key(sys.stdin)) is None:
        console.print(f"press one of {', '.join(Key)}")
    return key


def _store(service: ReviewService, flagged: FlaggedClaim, reviewer: str, key: Key) -> None:
    verdict = verdict_of(key, flagged.claim.verdict)
    if verdict is not None:
        service.review(flagged.claim.id, reviewer, verdict)


def _this_time(said: Counter[Key]) -> str:
    reviewed = said.total() - said[Key.SKIP] - said[Key.QUIT]
    return (
        f"reviewed now: {reviewed:,} (agreed {said[Key.AGREE]:,}, correct after all "
        f"{said[Key.CORRECT]:,}, unsupported {said[Key.UNSUPPORTED]:,}, contradicted "
        f"{said[Key.CONTRADICTED]:,}); skipped {said[Key.SKIP]:,}"
    )


def _reviewer(given: str | None) -> str:
    """Return who reviews; refuse a name that the service would not take."""
    name = _login_name() if given is None else given
    fault = reviewer_fault(name)
    if fault is None:
        return name
    if given is None:
        raise InputError(f"the login name {fault}; give --reviewer NAME")
    raise InputError(f"--reviewer: {fault}")


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name in the environment, and none for the user's number
        raise InputError("nobody knows who reviews: give --reviewer NAME") from None
