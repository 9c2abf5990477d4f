"""Random faults at a working service, and whether every audit came to one end all the same.

    python benchmarks/chaos.py [--audits 2000] [--seconds 240] [--every 4] [--seed 1]

Starts a `halldetect up` of its own (in a folder of its own, on free ports), submits small audits in
batches and singly, and strikes: processes are killed and ended, Valkey is killed, stopped, emptied,
Postgres killed and restarted, connections are cut. The supervisor starts again what died. When the
faults are over it waits until no audit waits, and reckons: lost, doubled and stuck must be 0 and
`halldetect doctor` clean, else the exit code is 1. An audit that had begun in three workers that
were all killed fails as it should, and is listed apart. `--json` prints one object instead.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from chaos_faults import FAULTS
from chaos_load import Load, Refused, small_records
from chaos_strikes import Recovery, Striker, recoveries
from chaos_tally import Tally, tally, wait_for_the_end
from own_stack import OwnStack
from rich.console import Console
from rich.table import Table

_START_SECONDS = 300.0
_END_SECONDS = 900.0


@dataclass(frozen=True)
class Report:
    """What a chaos run came to.

    Parameters
    ----------
    tally : Tally
        What became of the audits.
    recoveries : list of Recovery
        By kind of fault.
    repeated : dict
        Why submissions were sent again, and how often.
    seconds_after_faults : float
        From the last fault until no audit waited.
    """

    tally: Tally
    recoveries: list[Recovery]
    repeated: dict[str, int]
    seconds_after_faults: float


def run_chaos(stack: OwnStack, *, audits: int, seconds: float, every: float, seed: int) -> Report:
    """Submit and strike at once, wait for the end, and reckon.

    Parameters
    ----------
    stack : OwnStack
        What is struck; it is ready.
    audits : int
        How many to submit.
    seconds : float
        How long faults strike, and submissions go on.
    every : float
        Seconds between two faults, on average.
    seed : int
        Of all that is chosen at random.

    Raises
    ------
    Refused
        The service answered a submission as it must not, or took none for a long time.
    """
    draw = random.Random(seed)
    load = Load(lambda: stack.running.api_url, time.monotonic() + seconds + _END_SECONDS)
    striker = Striker(stack, load)
    refused: list[Refused] = []

    def submit() -> None:
        try:
            load.submit_over(small_records(audits, seed), seconds, random.Random(seed))
        except Refused as error:
            refused.append(error)

    submitter = threading.Thread(target=submit, daemon=True)
    submitter.start()
    striker.strike_at_random(FAULTS, seconds=seconds, every=every, draw=draw)
    over_at = time.monotonic()
    submitter.join(_END_SECONDS)
    striker.wait_for_recovery()
    stack.wait_until_ready(seconds=_START_SECONDS)
    wait_for_the_end(stack, seconds=_END_SECONDS)
    after = time.monotonic() - over_at
    if refused:
        raise refused[0]
    if submitter.is_alive():
        raise Refused("submissions were still not accepted when all else was over")
    found = tally(stack, load.accepted)
    return Report(found, recoveries(stack, FAULTS, striker.strikes), dict(load.repeated), after)


def print_report(console: Console, report: Report) -> None:
    """Print what was found as tables."""
    found = report.tally
    counts = Table(title="audits", title_justify="left")
    row = {
        "submitted": found.submitted,
        "completed": found.completed,
        "lost": len(found.lost),
        "doubled": len(found.doubled),
        "stuck": len(found.stuck),
        "failed": sum(found.failed.values()),
        "lost 3 workers": found.lost_workers,
    }
    for name in row:
        counts.add_column(name, justify="right")
    counts.add_row(*map(str, row.values()))
    console.print(counts)
    faults = Table(title="seconds until recovery: median, longest", title_justify="left")
    for name in ("fault", "struck", "part works", "next audit"):
        faults.add_column(name, justify="left" if name == "fault" else "right")
    for one in report.recoveries:
        times = (one.ready_seconds, one.next_audit_seconds)
        faults.add_row(one.fault, str(one.struck), *(_times(seconds) for seconds in times))
    console.print(faults)
    struck = sum(one.struck for one in report.recoveries)
    console.print(
        f"{struck} faults; no audit waited {report.seconds_after_faults:.0f} s after the last; "
        f"submissions sent again: {report.repeated or 'none'}"
    )
    _print_faults_found(console, found)


def _print_faults_found(console: Console, found: Tally) -> None:
    for reason, count in found.failed.items():
        console.print(f"failed ({count}): {reason}", markup=False)
    for name in ("lost", "doubled", "stuck", "findings"):
        for one in getattr(found, name)[:20]:
            console.print(f"{name}: {one}", markup=False)
    console.print("halldetect doctor: " + ("see above" if found.findings else "all is well"))


def _times(seconds: tuple[float, ...]) -> str:
    return ", ".join(f"{one:.1f}" for one in seconds)


def main() -> int:
    """Run the command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=240.0, help="how long faults strike")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, help="keep the stack's data and logs here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        OwnStack(options.home or Path(folder) / "home") as stack,
    ):
        stack.wait_until_ready(seconds=_START_SECONDS)
        report = run_chaos(
            stack,
            audits=options.audits,
            seconds=options.seconds,
            every=options.every,
            seed=options.seed,
        )
    if options.json:
        print(json.dumps(asdict(report), indent=2))
    else:
        print_report(Console(), report)
    return 0 if report.tally.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
