"""How well flags agree with people, on labelled sets of (source, response) pairs.

Every set is audited once; all policies are then scored from the stored matrices, without a model.

    python benchmarks/accuracy.py --data DIR --results FOLDER
        [--sets frank_valid ...] [--extractor llama] [--sample 100]

A set is DIR/NAME.jsonl with `source`, `response`, `label` (1: hallucinated) and perhaps `origin`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halldetect.auditor import Auditor, AuditResult
from halldetect.model_loading import load_auditor
from halldetect.record import Record, make_record
from halldetect.rescoring import scoring_input
from halldetect.scoring.policy import BUILTIN_POLICIES, Policy
from halldetect.scoring.score import score_audits
from halldetect.settings import load_settings
from halldetect.trail import Outcome

SETS = ["frank_valid", "diasumfact", "wice_dev", "expertqa_val"]
BOOTSTRAPS = 1000


@dataclass(frozen=True)
class Labelled:
    """One answer with the label people gave it."""

    record: Record
    hallucinated: bool
    group: str


@dataclass(frozen=True)
class Figures:
    """Agreement of one policy with the labels of one group."""

    answers: int
    without_claims: int
    auc: float
    auc_low: float
    auc_high: float
    f1: float
    balanced_accuracy: float


def main() -> None:
    """Audit the sets and print a table."""
    arguments = _arguments()
    settings = load_settings(extractor=arguments.extractor, profile=arguments.profile)
    auditor = load_auditor(settings)
    rows = []
    for name in arguments.sets:
        labelled = _read_set(arguments.data, name, arguments.sample, arguments.seed)
        results = _audit(auditor, labelled, f"{name}.{arguments.extractor}", arguments.results)
        rows.extend(_evaluate(labelled, results))
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of NAME.jsonl files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--extractor", choices=["sentences", "llama"], default="sentences")
    parser.add_argument("--profile", choices=["embedded", "paper"], default="embedded")
    parser.add_argument("--sample", type=int, help="audit this many answers a set, chosen by seed")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--results", type=Path, required=True, help="trails are kept here, and reused"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _read_set(folder: Path, name: str, sample: int | None, seed: int) -> list[Labelled]:
    rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    if sample is not None:
        # Shuffled and cut, so that a smaller sample is part of every larger one.
        random.Random(seed).shuffle(rows)
        rows = rows[:sample]
    return [
        Labelled(
            make_record(id=row["id"], source=row["source"], response=row["response"]),
            bool(row["label"]),
            f"{name} ({row['origin']})" if row.get("origin") else name,
        )
        for row in rows
    ]


def _audit(
    auditor: Auditor, labelled: list[Labelled], stem: str, folder: Path
) -> list[AuditResult]:
    """Audit what has no trail in the folder yet, and return all trails in order."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = folder / f"{stem}.jsonl"
    trails = {}
    if stored.exists():
        for line in stored.read_text().split("\n"):
            if line:
                result = AuditResult.model_validate_json(line)
                trails[result.custom_id] = result
    missing = [entry for entry in labelled if entry.record.custom_id not in trails]
    with stored.open("a") as file:
        for result in _with_progress(auditor, missing, stem):
            trails[result.custom_id] = result
            file.write(result.model_dump_json() + "\n")
    return [trails[entry.record.custom_id] for entry in labelled]


def _with_progress(auditor: Auditor, labelled: list[Labelled], stem: str) -> Iterator[AuditResult]:
    started = time.monotonic()
    pairs = 0
    records = (entry.record for entry in labelled)
    for done, result in enumerate(auditor.audit_many(records), start=1):
        pairs += sum(claim.checked_spans for claim in result.claims)
        if done % 25 == 0 or done == len(labelled):
            seconds = time.monotonic() - started
            progress = f"{stem}: {done}/{len(labelled)}, {pairs} pairs, {seconds:.0f} s"
            print(progress, file=sys.stderr, flush=True)
        yield result


def _evaluate(labelled: list[Labelled], results: list[AuditResult]) -> list[dict[str, Any]]:
    failed = [result for result in results if result.error]
    if failed:
        raise SystemExit(f"{len(failed)} audits failed, first: {failed[0].error}")
    scored = [
        (entry, result)
        for entry, result in zip(labelled, results, strict=True)
        if result.outcome is Outcome.SCORED
    ]
    labels = np.array([entry.hallucinated for entry, _ in scored])
    groups = np.array([entry.group for entry, _ in scored])
    inputs = [scoring_input(result) for _, result in scored]
    rows = []
    for policy in BUILTIN_POLICIES.values():
        scores = score_audits(inputs, policy).response_scores
        for group in dict.fromkeys(groups):
            chosen = groups == group
            if len(set(labels[chosen])) < 2:
                print(f"{group}: all answers have one label, no figures", file=sys.stderr)
                continue
            unscored = sum(entry.group == group for entry in labelled) - int(chosen.sum())
            figures = _figures(labels[chosen], scores[chosen], policy, unscored)
            rows.append({"set": str(group), "policy": policy.name, **vars(figures)})
    return rows


def _figures(
    labels: NDArray[np.bool_], scores: NDArray[np.float64], policy: Policy, unscored: int
) -> Figures:
    flagged = scores >= policy.response_threshold
    hits = int((flagged & labels).sum())
    recall = hits / labels.sum()
    specificity = float((~flagged & ~labels).sum() / (~labels).sum())
    generator = np.random.default_rng(7)
    draws = (generator.integers(0, len(labels), len(labels)) for _ in range(BOOTSTRAPS))
    aucs = [auc(labels[d], scores[d]) for d in draws if 0 < labels[d].sum() < len(d)]
    low, high = np.quantile(aucs, [0.025, 0.975])
    return Figures(
        answers=len(labels),
        without_claims=unscored,
        auc=auc(labels, scores),
        auc_low=float(low),
        auc_high=float(high),
        f1=2 * hits / float(flagged.sum() + labels.sum()),
        balanced_accuracy=(float(recall) + specificity) / 2,
    )


def auc(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the chance that a hallucinated answer scores above a faithful one; ties half."""
    positives, negatives = scores[labels], np.sort(scores[~labels])
    below = np.searchsorted(negatives, positives, side="left")
    at_most = np.searchsorted(negatives, positives, side="right")
    return float((below + at_most).mean() / 2 / len(negatives))


def _print_table(rows: list[dict[str, Any]]) -> None:
    print("| set | policy | answers | AUC (95 %) | F1 | balanced accuracy |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        unscored = f" (+{row['without_claims']} without claims)" if row["without_claims"] else ""
        print(
            f"| {row['set']} | {row['policy']} | {row['answers']}{unscored} "
            f"| {row['auc']:.3f} ({row['auc_low']:.3f}-{row['auc_high']:.3f}) "
            f"| {row['f1']:.3f} | {row['balanced_accuracy']:.3f} |"
        )


if __name__ == "__main__":
    main()
