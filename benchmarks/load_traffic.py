"""What the clients of the load test do, one request after the other, and how long each took."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

# How often each kind comes, of the sum of all.
SHARES = {
    "submit one": 20,
    "submit batch": 5,
    "read audit": 20,
    "read batch": 25,
    "list audits": 10,
    "list batches": 5,
    "read results": 8,
    "rescore": 2,
    "review": 5,
}
_JSONL = {"Content-Type": "application/jsonl"}
_SMALLEST_BATCH, _LARGEST_BATCH = 5, 20
_REMEMBERED = 200
_TIMEOUT_SECONDS = 120.0
_FAULTS_KEPT = 5


@dataclass
class Notes:
    """What happened, of all clients together.

    Parameters
    ----------
    seconds : dict
        For each kind how long each answered request took, from sending it to the last byte.
    statuses : dict
        For each kind how often each status code came, 429 included.
    limited_seconds : float
        How long clients waited because a 429 said so.
    faults : list of str
        The first answers that should not have been: 5xx, wrong contents, lost connections.
    fault_count : int
        How many there were.
    submitted : int
        Audits that were taken in.
    bytes_read : int
        Of all answers.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    limited_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0
    submitted: int = 0
    bytes_read: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def answered(self, kind: str, status: int, seconds: float, size: int) -> None:
        """Note an answer."""
        with self.lock:
            self.statuses[kind][status] += 1
            self.bytes_read += size
            if status != httpx.codes.TOO_MANY_REQUESTS:
                self.seconds[kind].append(seconds)

    def failed(self, what: str) -> None:
        """Note what should not have been."""
        with self.lock:
            self.fault_count += 1
            if len(self.faults) < _FAULTS_KEPT:
                self.faults.append(what)


class Client:
    """One client: a connection of its own, and what it has submitted.

    Parameters
    ----------
    number : int
        Which; the same number does the same things in the same order.
    url, key : str, str or None
        The API, and the key it may want.
    notes : Notes
        Where times go.
    pause : float
        Mean seconds between an answer and the next request; 0 for none.
    """

    def __init__(
        self, number: int, url: str, key: str | None, notes: Notes, *, pause: float
    ) -> None:
        self._number = number
        self._chance = random.Random(number)
        self._notes = notes
        self._pause = pause
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT_SECONDS)
        self._audits: list[str] = []
        self._batches: dict[str, int] = {}
        self._texts = 0
        self._ends_at = 0.0
        self._actions: dict[str, Callable[[str], None]] = {
            "submit one": self._submit_one,
            "submit batch": self._submit_batch,
            "read audit": self._read_audit,
            "read batch": self._read_batch,
            "list audits": self._list_audits,
            "list batches": self._list_batches,
            "read results": self._read_results,
            "rescore": self._rescore,
            "review": self._review,
        }

    def work(self, ends_at: float) -> None:
        """Send requests until a moment of the monotonic clock; what is under way is finished."""
        self._ends_at = ends_at
        with self._http:
            while time.monotonic() < ends_at:
                kind = self._chance.choices([*SHARES], [*SHARES.values()])[0]
                try:
                    self._actions[kind](kind)
                except (httpx.HTTPError, KeyError, ValueError) as error:
                    self._notes.failed(f"{kind}: {type(error).__name__}: {error}")
                if self._pause:
                    time.sleep(self._chance.expovariate(1 / self._pause))

    def _send(self, kind: str, method: str, path: str, **content: object) -> httpx.Response | None:
        """Send a request, again for as long as the answer is 429; None when the time is up."""
        while True:
            began = time.perf_counter()
            answer = self._http.request(method, path, **content)  # type: ignore[arg-type]
            seconds = time.perf_counter() - began
            self._notes.answered(kind, answer.status_code, seconds, len(answer.content))
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                break
            wait = float(answer.headers["Retry-After"])
            left = self._ends_at - time.monotonic()
            with self._notes.lock:
                self._notes.limited_seconds += min(wait, max(left, 0.0))
            if wait >= left:
                return None
            time.sleep(wait)
        if answer.is_error:
            self._notes.failed(f"{kind}: {answer.status_code} {answer.text[:300]}")
            return None
        return answer

    def _record(self) -> dict[str, str]:
        self._texts += 1
        ward = f"{self._number}-{self._texts}"
        year = self._chance.randrange(1900, 1990)
        said = year + self._chance.choice((0, 0, 0, 7))
        return {
            "custom_id": f"load-{ward}",
            "source": f"Ward {ward} opened in {year}. It has {self._texts % 40 + 2} beds. "
            "The mayor visited it twice. Nobody was moved.",
            "response": f"Ward {ward} opened in {said}. It has {self._texts % 40 + 2} beds.",
        }

    def _submit_one(self, kind: str) -> None:
        answer = self._send(kind, "POST", "/v1/audits", json=self._record())
        if answer is not None:
            self._taken_in(1)
            self._audits = [*self._audits[-_REMEMBERED:], answer.json()["id"]]

    def _submit_batch(self, kind: str) -> None:
        lines = self._chance.randint(_SMALLEST_BATCH, _LARGEST_BATCH)
        body = "".join(json.dumps(self._record()) + "\n" for _ in range(lines))
        answer = self._send(kind, "POST", "/v1/batches", content=body, headers=_JSONL)
        if answer is not None:
            self._taken_in(lines)
            self._expect(kind, answer.json()["total"], lines)
            self._batches[answer.json()["id"]] = lines

    def _taken_in(self, audits: int) -> None:
        with self._notes.lock:
            self._notes.submitted += audits

    def _expect(self, kind: str, found: object, wanted: object) -> None:
        if found != wanted:
            self._notes.failed(f"{kind}: {found!r} instead of {wanted!r}")

    def _read_audit(self, kind: str) -> None:
        if not self._audits:
            return
        audit = self._chance.choice(self._audits)
        answer = self._send(kind, "GET", f"/v1/audits/{audit}")
        if answer is not None:
            self._expect(kind, answer.json()["id"], audit)

    def _read_batch(self, kind: str) -> None:
        if not self._batches:
            return
        batch = self._chance.choice([*self._batches])
        answer = self._send(kind, "GET", f"/v1/batches/{batch}")
        if answer is not None:
            state = answer.json()
            ended = sum(state[name] for name in ("completed", "failed", "cancelled"))
            self._expect(kind, ended + state["waiting"], self._batches[batch])

    def _list_audits(self, kind: str) -> None:
        filters = [
            {},
            {"status": "completed"},
            {"label": "hallucinated"},
            {"custom_id": f"load-{self._number}-1"},
            {"batch_id": self._chance.choice([*self._batches])} if self._batches else {},
        ]
        query = {"limit": 50, **self._chance.choice(filters)}
        self._send(kind, "GET", "/v1/audits", params=query)

    def _list_batches(self, kind: str) -> None:
        self._send(kind, "GET", "/v1/batches", params={"limit": 20})

    def _read_results(self, kind: str) -> None:
        if not self._batches:
            return
        batch = self._chance.choice([*self._batches])
        answer = self._send(kind, "GET", f"/v1/batches/{batch}/results")
        if answer is not None:
            self._expect(kind, answer.content.count(b"\n"), self._batches[batch])

    def _rescore(self, kind: str) -> None:
        if not self._batches:
            return
        selection = {"batch_id": self._chance.choice([*self._batches])}
        body = {"policy": "paper", "selection": selection}
        answer = self._send(kind, "POST", "/v1/scorings", json=body)
        if answer is not None:
            self._send(kind, "GET", answer.headers["Location"])

    def _review(self, kind: str) -> None:
        if not self._batches:
            return
        batch = self._chance.choice([*self._batches])
        query = {"reviewer": f"client {self._number}", "limit": 1}
        page = self._send(kind, "GET", f"/v1/batches/{batch}/flagged-claims", params=query)
        if page is None or not page.json()["items"]:
            return
        claim = page.json()["items"][0]["claim"]
        body = {"reviewer": query["reviewer"], "verdict": claim["verdict"]}
        self._send(kind, "POST", f"/v1/claims/{claim['id']}/reviews", json=body)
