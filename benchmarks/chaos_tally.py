"""The reckoning after a chaos run: what was lost, doubled, stuck or failed."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
import psycopg
from chaos_load import Submission
from own_stack import OwnStack

from db.doctor import checks
from db.engine import make_engine, session_factory
from queues.names import Queue, queue_of

_TIMEOUT = httpx.Timeout(120.0, connect=5.0)
_POLL_SECONDS = 0.5
_LOST_WORKERS = "its worker was lost"
_UNFINISHED = "SELECT count(*) FROM halldetect.audits WHERE status IN ('queued', 'extracted')"
_TWICE = """
    SELECT 'submitted twice: ' || custom_id FROM halldetect.audits
        GROUP BY custom_id HAVING count(*) > 1
    UNION ALL SELECT 'extracted twice: ' || audit_id FROM halldetect.extractions
        GROUP BY audit_id HAVING count(*) > 1
    UNION ALL SELECT 'verified twice: ' || audit_id FROM halldetect.verifications
        GROUP BY audit_id HAVING count(*) > 1
    UNION ALL SELECT 'probabilities twice: ' || audit_id || '/' || position
        FROM halldetect.probabilities GROUP BY audit_id, position HAVING count(*) > 1
"""


@dataclass
class Tally:
    """What became of the audits that were submitted.

    Parameters
    ----------
    submitted : int
        Audits that the service accepted.
    completed : int
        Those with a result.
    lost, doubled, stuck : list of str
        Audits that are not there, that are there more than once in any respect (or counted
        otherwise than they are), and that have come to no end.
    failed : dict
        The other ends: reason to how many.
    lost_workers : int
        Of those that failed, the ones whose worker was lost each time that they were tried.
    findings : list of str
        What `halldetect doctor` found.
    """

    submitted: int = 0
    completed: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    lost_workers: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether every audit came to one end, and the trail is whole."""
        others = sum(self.failed.values()) - self.lost_workers
        return not (self.lost or self.doubled or self.stuck or self.findings or others)


def wait_for_the_end(stack: OwnStack, *, seconds: float) -> bool:
    """Wait until no audit waits or runs; False when the time is over before."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with psycopg.connect(stack.running.database_url) as connection:
                row = connection.execute(_UNFINISHED).fetchone()
            if row == (0,):
                return True
        except psycopg.OperationalError:
            pass  # still on its way back
        time.sleep(_POLL_SECONDS)
    return False


def tally(stack: OwnStack, submissions: Sequence[Submission]) -> Tally:
    """Compare what was accepted with what the API and the database say of it now."""
    found = Tally(submitted=sum(len(one.custom_ids) for one in submissions))
    with httpx.Client(base_url=stack.running.api_url, timeout=_TIMEOUT) as client:
        for submission in submissions:
            if submission.path == "/v1/batches":
                _compare_batch(client, submission, found)
            else:
                trail = client.get(f"/v1/audits/{submission.id}")
                trails = [trail.json()] if trail.status_code == httpx.codes.OK else []
                _compare(submission.custom_ids, trails, found)
    _compare_database(stack, submissions, found)
    found.findings = _doctor(stack)
    return found


def _compare_batch(client: httpx.Client, submission: Submission, found: Tally) -> None:
    results = client.get(f"/v1/batches/{submission.id}/results")
    results.raise_for_status()
    trails = [json.loads(line) for line in results.text.split("\n") if line]
    _compare(submission.custom_ids, trails, found)
    if [trail["custom_id"] for trail in trails] != list(submission.custom_ids):
        found.doubled.append(f"batch {submission.id}: results that are not those of its lines")
    told = client.get(f"/v1/batches/{submission.id}").raise_for_status().json()
    counted = Counter(trail["status"] for trail in trails)
    counted["total"] = len(submission.custom_ids)
    names = ("queued", "extracted", "completed", "failed", "cancelled", "total")
    differing = [f"{name} {told[name]}" for name in names if told[name] != counted[name]]
    if differing:
        found.doubled.append(f"batch {submission.id}: counted {', '.join(differing)}")


def _compare(custom_ids: Sequence[str], trails: Sequence[dict[str, str]], found: Tally) -> None:
    """Compare what one submission held with its results."""
    times = Counter(trail["custom_id"] for trail in trails)
    found.lost += [custom_id for custom_id in custom_ids if not times[custom_id]]
    found.doubled += [custom_id for custom_id, count in times.items() if count > 1]
    found.doubled += [f"not submitted: {one}" for one in times.keys() - set(custom_ids)]
    for trail in trails:
        if trail["status"] == "completed":
            found.completed += 1
        elif trail["status"] in ("queued", "extracted"):
            found.stuck.append(trail["custom_id"])
        else:
            reason = trail.get("error") or trail["status"]
            found.failed[reason] = found.failed.get(reason, 0) + 1
            found.lost_workers += reason.startswith(_LOST_WORKERS)


def _compare_database(stack: OwnStack, submissions: Sequence[Submission], found: Tally) -> None:
    """Look for rows that nobody submitted, and for what is stored twice."""
    submitted = {custom_id for one in submissions for custom_id in one.custom_ids}
    with psycopg.connect(stack.running.database_url) as connection:
        found.doubled += [str(row[0]) for row in connection.execute(_TWICE)]
        stored = connection.execute(
            "SELECT custom_id FROM halldetect.audits WHERE custom_id IS NOT NULL"
        )
        found.doubled += [f"not accepted: {row[0]}" for row in stored if row[0] not in submitted]


def _doctor(stack: OwnStack) -> list[str]:
    engine = make_engine(stack.running.database_url)
    try:
        findings = [
            one
            for _, check in checks(session_factory(engine), queue_of, Queue.MAINTENANCE)
            for one in check()
        ]
    finally:
        engine.dispose()
    return [
        f"{one.check} ({one.count}): {one.problem} {', '.join(one.examples)}" for one in findings
    ]
