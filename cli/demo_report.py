"""What the demo prints: what was planted and found, one trail in full, and where to look next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from cli.client.batch_state import BatchState
from cli.client.batch_tables import batch_table
from cli.demo_pairs import Finding, count_of, most_telling
from cli.render import LABEL_STYLES, VERDICT_STYLES, print_result
from cli.stack.run_file import RunningStack
from cli.stack.tables import addresses
from halldetect.scoring.verdict import Label

_QUERY = (
    "SELECT custom_id, verdict, text FROM trail.claims "
    "WHERE batch_id = {batch_id} AND verdict <> 'supported' ORDER BY score LIMIT 10"
)
_WITHOUT_PSQL = (
    "import psycopg, sys; print(*psycopg.connect(sys.argv[1]).execute(sys.argv[2]), sep=chr(10))"
)


def print_demo(console: Console, state: BatchState, found: Sequence[Finding]) -> None:
    """Print what the whole came to, each answer in a row, and one trail in full."""
    console.print(_what_was_submitted(found))
    console.print(batch_table(state))
    console.print(_table(found))
    console.print(_agreement(found))
    telling = most_telling(found)
    console.print()
    console.print(Rule(Text(f"{telling.pair.name}: one trail in full")))
    print_result(console, telling.result)
    console.print()


def where_to_look(console: Console, stack: RunningStack, batch_id: str, *, keeps: bool) -> None:
    """Print the addresses, and commands to go on with.

    Parameters
    ----------
    console : Console
        Where to.
    stack : RunningStack
        The demo's.
    batch_id : str
        What it was about.
    keeps : bool
        Whether it goes on running when the demo has ended.
    """
    console.print(Rule(Text("where to look next")))
    home = shlex.quote(str(stack.home))
    program = _program()
    if keeps:
        for label, address in addresses(stack):
            _print_line(console, f"{label}: {address}")
        database = shlex.quote(stack.database_url)
    else:
        _print_line(console, "The service stops now and its data stays. To have it again:")
        _print_line(console, f"  HALLDETECT_HOME={home} {program} up")
        database = '"$DATABASE_URL"'
    query = f'"{_QUERY.format(batch_id=batch_id)}"'
    _print_line(console, "In another terminal:")
    _print_line(console, f"  export HALLDETECT_HOME={home}")
    _print_line(console, f"  {program} status {batch_id}")
    _print_line(console, f"  {program} results {batch_id} --out results.jsonl")
    if not keeps:
        _print_line(console, f"With DATABASE_URL as `{program} status --json` tells it:")
    _print_line(console, f"  psql {database} -c {query}")
    _print_line(console, "or, without psql:")
    python = shlex.quote(sys.executable)
    _print_line(console, f"  {python} -c {shlex.quote(_WITHOUT_PSQL)} {database} {query}")


def _program() -> str:
    """Return our own command as it was called, so that it can be copied."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "halldetect" else "halldetect"


def _print_line(console: Console, line: str) -> None:
    """Print a line whole, however narrow the terminal, so that it can be copied."""
    console.print(Text(line), soft_wrap=True)


def _what_was_submitted(found: Sequence[Finding]) -> Text:
    faithful = count_of(found, Label.FAITHFUL)
    planted = count_of(found, Label.HALLUCINATED)
    return Text(
        f"{len(found)} answers to sources of many kinds were submitted: {faithful} true to their "
        f"source, {planted} with one planted fault, and {len(found) - faithful - planted} that "
        "says nothing which could be checked.",
    )


def _table(found: Sequence[Finding]) -> Table:
    table = Table(title="planted and found", title_justify="left")
    table.add_column("answer", no_wrap=True)
    table.add_column("planted", ratio=1)
    table.add_column("found", no_wrap=True)
    table.add_column("FEDscore", justify="right", no_wrap=True)
    table.add_column("as planted", no_wrap=True)
    for one in found:
        score = one.result.fedscore
        table.add_row(
            one.pair.name,
            _planted(one),
            _found(one),
            "–" if score is None else f"{score:.3f}",
            Text("yes", "green") if one.is_right else Text("NO", "bold red"),
        )
    return table


def _planted(one: Finding) -> Text:
    if one.pair.planted is None:
        return Text("–", "dim")
    text = Text(f"{one.pair.fault}: {one.pair.planted}")
    if one.caught is not None:
        text.append(" – ")
        text.append(one.caught.value, VERDICT_STYLES[one.caught])
    return text


def _found(one: Finding) -> Text:
    label = one.result.label
    return Text(one.found.replace("_", " "), "" if label is None else LABEL_STYLES[label])


def _agreement(found: Sequence[Finding]) -> Text:
    right = sum(one.is_right for one in found)
    return Text(
        f"{right} of {len(found)} as planted. The bundled encoder is small: it reads paraphrase "
        "well, numbers and roles badly (docs/accuracy.md)."
    )
