"""Audits of three shapes, for the measurements of the service."""

from __future__ import annotations

import random
from pathlib import Path

from halldetect.record import Record, make_record, parse_record

_PAIRS = Path(__file__).resolve().parent.parent / "cli" / "demo" / "pairs.jsonl"


def mixed_audits(count: int) -> list[Record]:
    """Return the shipped pairs, over and over; each response only once."""
    pairs = [parse_record(line) for line in _PAIRS.read_bytes().splitlines()]
    return [
        make_record(
            custom_id=f"a{n}",
            source=pairs[n % len(pairs)].source,
            response=f"{pairs[n % len(pairs)].response} This is answer {n}.",
        )
        for n in range(count)
    ]


def small_audits(count: int) -> list[Record]:
    """Return audits of one short claim against two sentences."""
    return [
        make_record(
            custom_id=f"s{n}",
            source=f"Ward {n} has {n % 40} beds. It opened in {1900 + n % 90}.",
            response=f"Ward {n} opened in {1900 + n % 80}.",
        )
        for n in range(count)
    ]


def large_audits(count: int) -> list[Record]:
    """Return audits of ten claims against a source of a hundred sentences."""
    draw = random.Random(1)
    places = ["mill", "bridge", "school", "harbour", "market", "tower", "station", "library"]
    sentences = [
        f"The {draw.choice(places)} of district {n} was rebuilt in {1900 + n} after a long debate."
        for n in range(100)
    ]
    return [
        make_record(
            custom_id=f"l{n}",
            source=" ".join(sentences),
            response=" ".join(draw.sample(sentences, 10)),
        )
        for n in range(count)
    ]
