"""Measure what each form of an NLI model costs: accuracy, distance from fp32, speed.

Pairs come from JSON-lines files (plain or .gz) with ``premise``, ``hypothesis`` and ``label``
(entailment, neutral, contradiction; other labels are left out and counted)::

    python models/measure_forms.py --pairs mnli.jsonl.gz snli.jsonl.gz
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pair_files import read_rows

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.labels import NliLabel
from halldetect.nli.model import NliModel
from halldetect.nli.onnx_model import ONNX_FORMS, OnnxNliModel
from halldetect.nli.torch_model import TorchNliModel

DEFAULT_MODEL = Path(__file__).resolve().parent / "nli-minilm"
SEED = 7


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """One pair and the relation that people saw in it."""

    premise: str
    hypothesis: str
    label: NliLabel
    file: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """Probabilities of every pair under one form, and how fast they came."""

    form: str
    probabilities: NDArray[np.float32]
    pairs_per_second: float


def main() -> None:
    """Read the command line, measure every form, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--sample", type=int, default=800, help="at most so many pairs a file")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pairs = [pair for path in arguments.pairs for pair in read_pairs(path, arguments.sample)]
    measurements = [
        measure(form, load, pairs)
        for form, load in forms_of(arguments.model, arguments.threads).items()
    ]
    print(markdown_table(measurements, pairs))


def read_pairs(path: Path, sample: int) -> list[LabelledPair]:
    """Read the three-way pairs of a file and draw at most `sample` of them."""
    rows = read_rows(path)
    names = {label.name.lower(): label for label in NliLabel}
    pairs = [
        LabelledPair(row["premise"], row["hypothesis"], names[row["label"]], path.name)
        for row in rows
        if row["label"] in names
    ]
    chosen = pairs if len(pairs) <= sample else random.Random(SEED).sample(pairs, sample)
    print(
        f"{path.name}: {len(chosen)} of {len(pairs)} pairs; "
        f"{len(rows) - len(pairs)} with other labels left out",
        file=sys.stderr,
    )
    return chosen


def forms_of(folder: Path, threads: int) -> dict[str, Callable[[], NliModel]]:
    """Name every form that the folder can be loaded in; the first is the reference."""
    location = str(folder)
    forms: dict[str, Callable[[], NliModel]] = {
        "torch float32": lambda: TorchNliModel.load(location, device="cpu"),
        "torch bfloat16": lambda: TorchNliModel.load(location, device="cpu", dtype="bfloat16"),
        "torch float16": lambda: TorchNliModel.load(location, device="cpu", dtype="float16"),
    }
    for form, (graph_file, _) in ONNX_FORMS.items():
        if (folder / graph_file).is_file():
            forms[f"onnx {form}"] = lambda form=form: OnnxNliModel.load(folder, form, threads)
    return forms


def measure(form: str, load: Callable[[], NliModel], pairs: list[LabelledPair]) -> Measurement:
    """Classify every pair under one form."""
    model = load()
    premises = [text.ids for text in model.tokenizer.encode([pair.premise for pair in pairs])]
    hypotheses = [text.ids for text in model.tokenizer.encode([p.hypothesis for p in pairs])]
    same_row = np.repeat(np.arange(len(pairs))[:, None], 2, axis=1)
    started = time.perf_counter()
    probabilities = pair_probabilities(model, premises, hypotheses, same_row)
    seconds = time.perf_counter() - started
    print(f"{form}: {seconds:.1f} s", file=sys.stderr)
    return Measurement(form, probabilities, len(pairs) / seconds)


def markdown_table(measurements: list[Measurement], pairs: list[LabelledPair]) -> str:
    """Lay the measurements out as a Markdown table."""
    labels = np.array([pair.label for pair in pairs])
    files = list(dict.fromkeys(pair.file for pair in pairs))
    member = {file: np.array([pair.file == file for pair in pairs]) for file in files}
    header = [
        "form",
        *(f"accuracy {file} ({int(member[file].sum())})" for file in files),
        "mean abs(dp)",
        "max abs(dp)",
        "decisions changed",
        "pairs/s",
    ]
    lines = [_row(header), _row(["---"] * len(header))]
    reference = measurements[0].probabilities
    for measurement in measurements:
        chosen = measurement.probabilities.argmax(axis=1)
        distance = np.abs(measurement.probabilities - reference)
        cells = [
            measurement.form,
            *(f"{np.mean((chosen == labels)[member[file]]):.2%}" for file in files),
            f"{distance.mean():.1e}",
            f"{distance.max():.1e}",
            f"{int((chosen != reference.argmax(axis=1)).sum())} of {len(pairs)}",
            f"{measurement.pairs_per_second:.0f}",
        ]
        lines.append(_row(cells))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
