"""Scores stored audits under other policies, as a maintenance worker does, but in this process."""

from __future__ import annotations

import threading

from celery import Celery

from db.policies import create_policy
from db.rescorings import create_rescoring, get_rescoring
from db.selections import Selection
from halldetect.scoring.policy import parse_policy
from queues.wake_ups import WakeUps
from worker.rescoring import Rescorer


def make_policy(session, name, claim_value="entailment", aggregation="mean", **rules):
    """Store a policy and return it."""
    rules = {"claim_value": claim_value, "aggregation": aggregation, **rules}
    return create_policy(session, parse_policy({"name": name, **rules}))[0]


def request_rescoring(sessions, policy, **selection):
    """Store a request to score audits under a policy that is stored, and return its id."""
    with sessions.begin() as session:
        return create_rescoring(session, policy, Selection(**selection)).id


def rescorer(engine, *, run_seconds=600, broker="memory://"):
    """Return a worker's part of rescorings; its messages are kept in this process."""
    wake_ups = WakeUps(Celery(broker=broker, set_as_current=False))
    return Rescorer(engine, wake_ups, run_seconds=run_seconds, stopping=threading.Event())


def rescore(engine, sessions, policy, **selection):
    """Score audits under a policy and return how the rescoring ended."""
    rescoring_id = request_rescoring(sessions, policy, **selection)
    rescorer(engine).run(rescoring_id)
    with sessions.begin() as session:
        return get_rescoring(session, rescoring_id)
