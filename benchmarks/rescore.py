"""Re-score a whole history under every aggregation, and compare with running the encoder again.

    python benchmarks/history.py postgresql://... --claims 1000000
    python benchmarks/rescore.py postgresql://... [--pairs-per-second 80] [--json OUT.json]

Every policy is new to the database, so that each score is computed and stored; one process does
what a maintenance worker does. What running the encoder again would cost is the number of stored
pairs over the pairs a second that the bundled encoder reaches on some of these audits, unless the
figure of another machine is given. At the end the audits' own scores are computed once more from
what is stored, and compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from celery import Celery
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session, sessionmaker

from db.engine import make_engine, session_factory
from db.models import Audit, PolicyVersion
from db.policies import StoredPolicy, create_policy, stored_policy
from db.rescorings import create_rescoring, get_rescoring
from db.selections import Selection, fix_selection
from db.stored_matrices import next_audits, read_cells
from halldetect.model_loading import load_nli
from halldetect.scoring.policy import Aggregation, parse_policy
from halldetect.scoring.score import score_cells
from halldetect.settings import load_settings
from halldetect.sources import prepare_source
from halldetect.verification import Hypotheses, VerificationInput, verify
from queues.wake_ups import WakeUps
from worker.rescoring import Rescorer

CONTRASTIVE = {"claim_value": "contrastive"}
ENTAILMENT = {"claim_value": "entailment"}
POLICIES: dict[str, dict[str, Any]] = {
    Aggregation.FEDSCORE: CONTRASTIVE,
    Aggregation.MIN: ENTAILMENT,
    Aggregation.MEAN: CONTRASTIVE,
    Aggregation.WEIGHTED: {"claim_value": "contradiction"},
    Aggregation.ROW_MAX: ENTAILMENT,
}
MORE_POLICIES: dict[str, dict[str, Any]] = {
    "fedscore, margin 0.1": {**CONTRASTIVE, "aggregation": "fedscore", "margin": 0.1},
    "mean of m = 1, 4": {**ENTAILMENT, "aggregation": "mean", "granularities": [1, 4]},
}
ENCODED_AUDITS = 8


@dataclass(frozen=True, slots=True)
class Rescored:
    """One policy over the whole history.

    Parameters
    ----------
    rules : str
        What it is called here.
    seconds : float
        From the request to the last commit.
    audits, scored, skipped : int
        Audits of the history, those that were scored, and those that do not fit the policy.
    """

    rules: str
    seconds: float
    audits: int
    scored: int
    skipped: int


def main() -> None:
    """Read the command line, re-score, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="a database that benchmarks/history.py filled")
    parser.add_argument("--pairs-per-second", type=float, help="of the encoder to compare with")
    parser.add_argument("--json", type=Path, metavar="OUT")
    arguments = parser.parse_args()
    engine = make_engine(arguments.url)
    sessions = session_factory(engine)
    aggregations = [
        rescore(engine, sessions, name, {"aggregation": name, **rules})
        for name, rules in POLICIES.items()
    ]
    more = [rescore(engine, sessions, name, rules) for name, rules in MORE_POLICIES.items()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = sum(one.seconds for one in aggregations)
    claims, pairs = count_claims_and_pairs(sessions)
    speed = arguments.pairs_per_second or encoder_speed(sessions)
    compared, deviation = largest_deviation(sessions)
    print(table(aggregations + more))
    print(
        f"{claims:,} claims, {pairs:,} pairs; all aggregations in {total:.1f} s, peak memory "
        f"{peak:.0f} MiB\n"
        f"the encoder at {speed:.1f} pairs/s would take {pairs / speed / 3600:.1f} h: one policy "
        f"is {pairs / speed / (total / len(aggregations)):,.0f} times as fast\n"
        f"{compared:,} scores under the audits' own policies deviate by {deviation:.1e} at most"
    )
    if arguments.json:
        result = {
            "policies": [asdict(one) for one in aggregations + more],
            "aggregations_seconds": total,
            "peak_mebibytes": peak,
            "claims": claims,
            "pairs": pairs,
            "pairs_per_second": speed,
            "compared_scores": compared,
            "largest_deviation": deviation,
        }
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def rescore(
    engine: Engine, sessions: sessionmaker[Session], name: str, rules: dict[str, Any]
) -> Rescored:
    """Score everything under a policy of a name of its own."""
    policy = parse_policy({"name": f"benchmark-{secrets.token_hex(4)}", **rules})
    with sessions.begin() as session:
        stored, _ = create_policy(session, policy)
    worker = Rescorer(
        engine, WakeUps(Celery()), run_seconds=float("inf"), stopping=threading.Event()
    )
    started = time.perf_counter()
    with sessions.begin() as session:
        rescoring_id = create_rescoring(session, stored, Selection()).id
    worker.run(rescoring_id)
    seconds = time.perf_counter() - started
    with sessions.begin() as session:
        status = get_rescoring(session, rescoring_id)
    if status is None or status.scored + status.skipped != status.total:
        raise RuntimeError(f"not every audit was scored: {status}")
    return Rescored(name, seconds, status.total, status.scored, status.skipped)


def count_claims_and_pairs(sessions: sessionmaker[Session]) -> tuple[int, int]:
    """Count the verified claims, and the pairs that the encoder judged for them."""
    statement = text("SELECT count(checked_spans), sum(checked_spans) FROM halldetect.claims")
    with sessions.begin() as session:
        claims, pairs = session.execute(statement).one()
    return claims, pairs


def encoder_speed(sessions: sessionmaker[Session]) -> float:
    """Return the pairs a second of the bundled encoder on a few audits of the history."""
    settings = load_settings()
    nli = load_nli(settings)
    statement = text(
        """
        SELECT d.text, array_agg(c.verified_text ORDER BY c.position)
        FROM halldetect.audits AS a
        JOIN halldetect.documents AS d ON d.id = a.document_id
        JOIN halldetect.claims AS c ON c.audit_id = a.id
        WHERE a.status = 'completed' GROUP BY a.id, d.text ORDER BY a.id LIMIT :audits
        """
    )
    with sessions.begin() as session:
        rows = session.execute(statement, {"audits": ENCODED_AUDITS}).all()
    inputs = []
    for source, claims in rows:
        encoded = nli.tokenizer.encode(claims)
        hypotheses = Hypotheses(
            tuple(claims), tuple(one.ids for one in encoded), tuple(one.unknown for one in encoded)
        )
        inputs.append(
            VerificationInput(prepare_source(source, nli, settings.max_sentences), hypotheses)
        )
    started = time.perf_counter()
    matrices = verify(nli, inputs, token_budget=settings.token_budget, preselected_spans=None)
    return sum(matrix.entailment.size for matrix in matrices) / (time.perf_counter() - started)


def largest_deviation(sessions: sessionmaker[Session]) -> tuple[int, float]:
    """Compute the audits' own scores again; return how many, and the largest difference."""
    compared, deviation = 0, 0.0
    with sessions.begin() as session:
        used = select(PolicyVersion).where(PolicyVersion.id.in_(select(Audit.policy_id)))
        policies = [stored_policy(row) for row in session.scalars(used)]
        for policy in policies:
            for again, stored in own_scores(session, policy):
                differences = np.abs(again - stored)[~np.isnan(stored)]
                compared += len(differences)
                deviation = max(deviation, float(differences.max(initial=0.0)))
                if not np.array_equal(np.isnan(again), np.isnan(stored)):
                    raise RuntimeError("an audit has a score on one side alone")
    return compared, deviation


def own_scores(
    session: Session, policy: StoredPolicy
) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Yield scores of audits under their own policy, computed again and as they are stored."""
    fixed, _ = fix_selection(session, Selection(policy=policy.policy.name))
    after = 0
    while len(audits := next_audits(session, fixed, after)):
        after = int(audits.ids[-1])
        own = audits.only(audits.policy_ids == policy.id)
        stored = read_cells(session, own, policy.policy)
        ids = stored.audit_ids.tolist()
        fedscores = session.scalars(
            select(Audit.fedscore).where(Audit.id.in_(ids)).order_by(Audit.id)
        )
        yield (
            score_cells(stored.cells, policy.policy).response_scores,
            np.array([np.nan if one is None else one for one in fedscores]),
        )


def table(results: list[Rescored]) -> str:
    """Lay the results out as a Markdown table."""
    lines = [
        "| rules | seconds | audits scored | skipped | audits/s |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.rules} | {one.seconds:.1f} | {one.scored:,} | {one.skipped:,} | "
        f"{one.audits / one.seconds:,.0f} |"
        for one in results
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
