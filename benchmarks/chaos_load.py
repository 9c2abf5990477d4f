"""What a chaos run submits: each thing until the service has it, once, whatever is struck."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

Record = dict[str, Any]

_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
# The answers after which a client may send the same again, by its key.
_PASSING = {
    httpx.codes.CONFLICT,
    httpx.codes.TOO_MANY_REQUESTS,
    httpx.codes.SERVICE_UNAVAILABLE,
}
_PAUSE_SECONDS = 0.5
_PIECES = 8
_PLACES = ("mill", "ward", "bridge", "school", "harbour", "market", "tower", "library")


class Refused(Exception):
    """The service answered what it must not answer, whatever was struck."""


@dataclass(frozen=True)
class Submission:
    """A batch, or a single audit, that the service has accepted.

    Parameters
    ----------
    path : str
        ``/v1/batches`` or ``/v1/audits``.
    id : str
        What the service calls it.
    custom_ids : tuple of str
        What went in.
    """

    path: str
    id: str
    custom_ids: tuple[str, ...]


def small_records(count: int, seed: int = 1, first: int = 0) -> list[Record]:
    """Return records of one to three short claims against two sentences, no two alike.

    Parameters
    ----------
    count : int
        How many.
    seed : int
        Of their random parts.
    first : int
        Number of the first; the others follow.
    """
    draw = random.Random(seed)
    return [_small_record(number, draw) for number in range(first, first + count)]


def _small_record(number: int, draw: random.Random) -> Record:
    name = f"{draw.choice(_PLACES)} {number}"
    year, rooms = draw.randrange(1800, 2000), draw.randrange(2, 90)
    claims = [f"The {name} opened in {draw.choice([year, 1700])}."]
    claims += [f"It has {rooms} rooms."] * draw.randrange(2)
    claims += [f"The {name} burned down."] * draw.randrange(2)
    return {
        "custom_id": f"chaos-{number}",
        "source": f"The {name} opened in {year}. It has {rooms} rooms.",
        "response": " ".join(claims),
    }


@dataclass
class Load:
    """Submits records and keeps what was accepted.

    Parameters
    ----------
    api_url : callable
        Where the API listens now.
    deadline : float
        When to give up trying, on the monotonic clock.
    upload_seconds : float
        How long the pieces of a batch take to be sent.
    upload_under_way : threading.Event
        Set while a batch is being sent.
    last_piece : threading.RLock
        Whoever holds it holds back the last piece of every batch: no upload ends meanwhile.
    """

    api_url: Callable[[], str]
    deadline: float
    upload_seconds: float = 0.5
    accepted: list[Submission] = field(default_factory=list)
    repeated: Counter[str] = field(default_factory=Counter)
    upload_under_way: threading.Event = field(default_factory=threading.Event)
    last_piece: threading.RLock = field(default_factory=threading.RLock)

    def submit_batch(self, records: Sequence[Record]) -> None:
        """Upload one batch, piece by piece."""
        lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        headers = {"Content-Type": "application/jsonl"}
        self._submit("/v1/batches", records, lambda: self._pieces(lines), headers)

    def submit_audit(self, record: Record) -> None:
        """Submit one audit."""
        body = json.dumps(record).encode()
        self._submit("/v1/audits", [record], lambda: body, {"Content-Type": "application/json"})

    def submit_over(self, records: Sequence[Record], seconds: float, draw: random.Random) -> None:
        """Submit all of `records` in the course of some time, most in batches, some singly."""
        began, total, left = time.monotonic(), len(records), list(records)
        while left:
            size = 1 if draw.random() < 0.3 else draw.randrange(10, 60)
            portion, left = left[:size], left[size:]
            if size == 1:
                self.submit_audit(portion[0])
            else:
                self.submit_batch(portion)
            due = began + seconds * (total - len(left)) / total
            time.sleep(max(0.0, due - time.monotonic()))

    def _submit(
        self,
        path: str,
        records: Sequence[Record],
        content: Callable[[], bytes | Iterator[bytes]],
        headers: dict[str, str],
    ) -> None:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self._first_acceptance(path, content, headers | key)
        custom_ids = tuple(record["custom_id"] for record in records)
        self.accepted.append(Submission(path, answer["id"], custom_ids))

    def _first_acceptance(
        self,
        path: str,
        content: Callable[[], bytes | Iterator[bytes]],
        headers: dict[str, str],
    ) -> dict[str, Any]:
        while True:
            try:
                url = f"{self.api_url()}{path}"
                answer = httpx.post(url, content=content(), headers=headers, timeout=_TIMEOUT)
                if answer.status_code == httpx.codes.ACCEPTED:
                    return dict(answer.json())
                why = f"answered {answer.status_code}"
                if answer.status_code not in _PASSING:
                    raise Refused(f"{url}: {why}: {answer.text[:2000]}")
            except httpx.TransportError as error:
                why = type(error).__name__
            finally:
                self.upload_under_way.clear()
            self.repeated[why] += 1
            if time.monotonic() > self.deadline:
                raise Refused(f"{path}: not accepted in time; last: {why}")
            time.sleep(_PAUSE_SECONDS)

    def _pieces(self, content: bytes) -> Iterator[bytes]:
        size = len(content) // _PIECES + 1
        *pieces, last = (content[at : at + size] for at in range(0, len(content), size))
        for piece in pieces:
            yield piece
            self.upload_under_way.set()
            time.sleep(self.upload_seconds / _PIECES)
        with self.last_piece:
            self.upload_under_way.clear()
        yield last
