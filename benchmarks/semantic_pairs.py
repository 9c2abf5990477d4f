"""How many hand-made (source, claim) pairs get the verdict a person would give.

    python benchmarks/semantic_pairs.py PAIRS.jsonl

Each line has `id`, `source`, `claim` and `expected` (supported, contradicted, unsupported).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from halldetect.model_loading import load_auditor
from halldetect.record import make_record
from halldetect.rescoring import rescore
from halldetect.scoring.policy import BUILTIN_POLICIES
from halldetect.settings import load_settings


def main() -> None:
    """Audit the pairs once and print how each policy judges them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("pairs", type=Path)
    arguments = parser.parse_args()
    pairs = [json.loads(line) for line in arguments.pairs.read_text().splitlines()]
    auditor = load_auditor(load_settings(extractor="sentences"))
    records = [make_record(id=p["id"], source=p["source"], response=p["claim"]) for p in pairs]
    results = list(auditor.audit_many(records))
    expected = Counter(pair["expected"] for pair in pairs)
    for policy in BUILTIN_POLICIES.values():
        right: Counter[str] = Counter()
        wrong = []
        for pair, result in zip(pairs, results, strict=True):
            verdict = rescore(result, policy).verdicts[0]
            if verdict == pair["expected"]:
                right[pair["expected"]] += 1
            else:
                wrong.append(f"{pair['id']} {pair['expected']} -> {verdict}")
        shares = ", ".join(f"{right[kind]}/{count} {kind}" for kind, count in expected.items())
        print(f"{policy.name}: {right.total()}/{len(pairs)} right ({shares})")
        print("  wrong: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
