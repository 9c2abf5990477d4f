"""Time every query of docs/sql.md, and show what each one reads.

    python benchmarks/cookbook.py postgresql://... [--rounds 3] [--plan "How often"]

Fill the database with benchmarks/history.py first.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

_DOCUMENT = Path(__file__).parents[1] / "docs" / "sql.md"
_QUERY = re.compile(r"^### (?P<title>[^\n]+)$(?:(?!^###).)*?^```sql\n(?P<sql>.+?)^```", re.M | re.S)
_PARTITION = re.compile(r"^probabilities_\d{4}_\d{2}$")


@dataclass(frozen=True, slots=True)
class Question:
    """A query of the cookbook, under its heading."""

    title: str
    sql: str


@dataclass(frozen=True, slots=True)
class Measured:
    """How one query did.

    Parameters
    ----------
    milliseconds : float
        Best of all rounds, planning included.
    rows : int
        Rows of the answer.
    reads : str
        Tables read whole, and indexes used.
    """

    milliseconds: float
    rows: int
    reads: str


def questions() -> list[Question]:
    """Read the queries, in order."""
    found = _QUERY.finditer(_DOCUMENT.read_text(encoding="utf-8"))
    return [Question(match["title"], match["sql"].strip()) for match in found]


def measure(connection: psycopg.Connection, sql: str, rounds: int) -> Measured:
    """Run a query `rounds` times."""
    runs = [_explained(connection, sql) for _ in range(rounds)]
    plan = runs[0]["Plan"]
    return Measured(
        milliseconds=min(run["Planning Time"] + run["Execution Time"] for run in runs),
        rows=int(plan["Actual Rows"]),
        reads=", ".join(dict.fromkeys(_reads(plan))),
    )


def _explained(connection: psycopg.Connection, sql: str) -> dict[str, Any]:
    row = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchone()
    if row is None:
        raise RuntimeError("EXPLAIN answered nothing")
    return dict(row[0][0])


def _reads(node: dict[str, Any]) -> Iterator[str]:
    """Yield the tables that a plan scans and the indexes that it uses, if it ran that part."""
    if node.get("Actual Loops", 1):
        table = _PARTITION.sub("probabilities", node.get("Relation Name", ""))
        if "Seq Scan" in node["Node Type"]:
            yield f"all of {table}"
        elif "Index Name" in node:
            yield re.sub(r"^probabilities_\d{4}_\d{2}", "probabilities", node["Index Name"])
    for child in node.get("Plans", []):
        yield from _reads(child)


def main() -> None:
    """Read the command line, run the queries, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="postgresql://user:password@host:port/name")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--plan", metavar="TITLE", help="print the plan of the query so headed")
    arguments = parser.parse_args()
    with psycopg.connect(arguments.url, autocommit=True) as connection:
        if arguments.plan:
            for question in questions():
                if arguments.plan in question.title:
                    print(f"-- {question.title}")
                    for (line,) in connection.execute(f"EXPLAIN ANALYZE {question.sql}"):
                        print(line)
            return
        print("| question | ms | rows | reads |\n|---|---:|---:|---|")
        for question in questions():
            found = measure(connection, question.sql, arguments.rounds)
            print(
                f"| {question.title} | {found.milliseconds:,.0f} | {found.rows} | {found.reads} |"
            )


if __name__ == "__main__":
    main()
