"""Pairs a second of the token-budget batches, against three other ways to run the same pairs.

    python benchmarks/nli_throughput.py [--threads 2] [--budgets 1024 2048 4096] [--json OUT.json]

The pairs are what audits make: spans of generated articles at granularities 1 to 16 as premises,
sentences as hypotheses, in the order in which audits arrive. Every form of the model runs

- ``ours``: `pair_probabilities`, with planning, padding, softmax and scattering,
- ``single``: one pair at a time,
- ``arrival``: fixed batches of 16 in arrival order, padded to the longest,
- ``bare``: only the forward pass, over batches that were sorted and padded beforehand,

several times in turn, and the best time of each counts, so that a busy machine skews no ratio.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from halldetect.nli.batching import DEFAULT_TOKEN_BUDGET, batch_statistics, plan_batches
from halldetect.nli.entailment import pair_probabilities, softmax
from halldetect.nli.model import NliModel
from halldetect.nli.onnx_model import ONNX_FORMS, OnnxNliModel
from halldetect.nli.pair_tokenizer import PaddedBatch, TokenIds
from halldetect.nli.torch_model import TorchNliModel

DEFAULT_MODEL = Path(__file__).resolve().parent.parent / "models" / "nli-minilm"
GRANULARITIES = (1, 2, 4, 8, 16)
ARRIVAL_BATCH = 16
LONGEST_PAIR = 500
SEED = 11
SUBJECTS = ("The council", "A ferry company", "Dr. Amara Lindqvist", "The museum", "Every school")
VERBS = ("approved", "postponed", "criticised", "paid for", "reopened", "measured")
OBJECTS = ("the new tram line", "a survey of 1,240 homes", "the harbour wall", "two old bridges")
TAILS = (
    "",
    " on Tuesday",
    " after a debate that lasted until midnight",
    ", although the budget of $4.2 million had been spent in March",
    " because the storm of 2019 had damaged the roof, the pumps and most of the lower rooms",
)


@dataclass(frozen=True, slots=True)
class Workload:
    """Tokenized pairs in arrival order."""

    premises: list[TokenIds]
    hypotheses: list[TokenIds]
    pairs: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def assembled(self, model: NliModel, rows: NDArray[np.int64]) -> PaddedBatch:
        """Pad the chosen rows to one batch."""
        chosen = self.pairs[rows]
        return model.tokenizer.assemble(
            [self.premises[index] for index in chosen[:, 0]],
            [self.hypotheses[index] for index in chosen[:, 1]],
        )


@dataclass(frozen=True, slots=True)
class Throughput:
    """Pairs a second of one form under one budget."""

    form: str
    token_budget: int
    ours: float
    single: float
    arrival: float
    bare: float
    padding_ratio: float

    @property
    def share_of_bare(self) -> float:
        """How much of the bare forward pass is left after batching; 1 is perfect."""
        return self.ours / self.bare


def main() -> None:
    """Read the command line, run every form, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=320, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--budgets", type=int, nargs="+", default=[DEFAULT_TOKEN_BUDGET])
    parser.add_argument("--forms", nargs="+", help="for example onnx:fp32 torch:float32")
    parser.add_argument("--json", type=Path, metavar="OUT")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    loaders = forms_of(arguments.model, arguments.threads)
    results = []
    for form in arguments.forms or loaders:
        model = loaders[form]()
        workload = make_workload(model, arguments.pairs)
        results += measure(form, model, workload, arguments.budgets, arguments.rounds)
    print(f"{arguments.pairs} pairs of {describe(workload.lengths)}, {arguments.threads} threads")
    print(table(results))
    if arguments.json:
        rows = [asdict(result) | {"share_of_bare": result.share_of_bare} for result in results]
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def forms_of(folder: Path, threads: int) -> dict[str, Callable[[], NliModel]]:
    """Name every backend and weight form of the folder."""
    forms: dict[str, Callable[[], NliModel]] = {}
    for form, (graph_file, _) in ONNX_FORMS.items():
        if (folder / graph_file).is_file():
            forms[f"onnx:{form}"] = lambda form=form: OnnxNliModel.load(folder, form, threads)
    for dtype in ("float32", "bfloat16"):
        forms[f"torch:{dtype}"] = lambda dtype=dtype: TorchNliModel.load(
            str(folder), device="cpu", dtype=dtype
        )
    return forms


def make_workload(model: NliModel, count: int) -> Workload:
    """Generate audits until there are `count` pairs."""
    generator = random.Random(SEED)
    premises: list[str] = []
    hypotheses: list[str] = []
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count:
        article = [make_sentence(generator) for _ in range(generator.randint(6, 24))]
        claims = [make_sentence(generator) for _ in range(3)] + [generator.choice(article)]
        spans = spans_of(article)
        pairs += [
            (len(premises) + span, len(hypotheses) + claim)
            for claim in range(len(claims))
            for span in range(len(spans))
        ]
        premises += spans
        hypotheses += claims
    premise_ids = [text.ids for text in model.tokenizer.encode(premises)]
    hypothesis_ids = [text.ids for text in model.tokenizer.encode(hypotheses)]
    # Whole articles of more tokens than the encoder reads are windowed in an audit; here they
    # are shortened.
    premise_ids = [ids[: LONGEST_PAIR - 60] for ids in premise_ids]
    chosen = np.array(pairs[:count], dtype=np.int64)
    lengths = np.array(
        [len(premise_ids[p]) + len(hypothesis_ids[h]) + model.tokenizer.overhead for p, h in chosen]
    )
    return Workload(premise_ids, hypothesis_ids, chosen, lengths)


def make_sentence(generator: random.Random) -> str:
    """Invent a sentence of 6 to 40 words."""
    parts = [generator.choice(choices) for choices in (SUBJECTS, VERBS, OBJECTS, TAILS)]
    return f"{parts[0]} {parts[1]} {parts[2]}{parts[3]}."


def spans_of(sentences: list[str]) -> list[str]:
    """Join consecutive sentences at every granularity, each distinct span once."""
    spans: dict[tuple[int, int], str] = {}
    for granularity in GRANULARITIES:
        size = -(-len(sentences) // granularity)
        for start in range(0, len(sentences), size):
            end = min(start + size, len(sentences))
            spans[start, end] = " ".join(sentences[start:end])
    return list(spans.values())


def measure(
    form: str, model: NliModel, workload: Workload, budgets: list[int], rounds: int
) -> list[Throughput]:
    """Time the four ways in turn, `rounds` times, for every budget."""
    rows = np.arange(len(workload.pairs))
    single = [rows[index : index + 1] for index in rows]
    arrival = [rows[at : at + ARRIVAL_BATCH] for at in range(0, len(rows), ARRIVAL_BATCH)]
    plans = {budget: plan_batches(workload.lengths, budget) for budget in budgets}
    ready = {
        budget: [workload.assembled(model, batch) for batch in plan]
        for budget, plan in plans.items()
    }
    ways: dict[str, Callable[[], None]] = {
        "single": lambda: run_batches(model, workload, single),
        "arrival": lambda: run_batches(model, workload, arrival),
    }
    for budget in budgets:
        ways[f"bare {budget}"] = lambda budget=budget: run_bare(model, ready[budget])
        ways[f"ours {budget}"] = lambda budget=budget: run_ours(model, workload, budget)
    best = best_times(ways, rounds)
    speed = {way: len(rows) / seconds for way, seconds in best.items()}
    return [
        Throughput(
            form=form,
            token_budget=budget,
            ours=speed[f"ours {budget}"],
            single=speed["single"],
            arrival=speed["arrival"],
            bare=speed[f"bare {budget}"],
            padding_ratio=batch_statistics(workload.lengths, plan, budget).padding_ratio,
        )
        for budget, plan in plans.items()
    ]


def best_times(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the best time of every way in seconds, the ways taking turns."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, work in ways.items():
            started = time.perf_counter()
            work()
            best[way] = min(best[way], time.perf_counter() - started)
    return best


def run_batches(model: NliModel, workload: Workload, batches: list[NDArray[np.int64]]) -> None:
    """Pad, run and softmax given batches."""
    for batch in batches:
        softmax(model.logits(workload.assembled(model, batch)))


def run_bare(model: NliModel, batches: list[PaddedBatch]) -> None:
    """Run the forward pass alone."""
    for batch in batches:
        model.logits(batch)


def run_ours(model: NliModel, workload: Workload, budget: int) -> None:
    """Run the pairs as an audit does."""
    pair_probabilities(model, workload.premises, workload.hypotheses, workload.pairs, budget)


def describe(lengths: NDArray[np.int64]) -> str:
    """Sum up pair lengths in words."""
    return (
        f"{lengths.min()} to {lengths.max()} tokens (median {np.median(lengths):.0f}, "
        f"mean {lengths.mean():.0f})"
    )


def table(results: list[Throughput]) -> str:
    """Lay the results out as a Markdown table."""
    lines = [
        "| form | token budget | ours pairs/s | x single | x arrival | of bare | padding |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r.form} | {r.token_budget} | {r.ours:.1f} | {r.ours / r.single:.2f} | "
        f"{r.ours / r.arrival:.2f} | {r.share_of_bare:.3f} | {r.padding_ratio:.1%} |"
        for r in results
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
