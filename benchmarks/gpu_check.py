"""Both model stages on a CUDA device: agreement, speed, and what happens at the end of its memory.

    benchmarks/gpu_check.sh [--json OUT.json]

Needs no network: it uses the bundled encoder, the bundled GGUF file, and torch and
llama-cpp-python built for CUDA. It exits with 1 when a result is wrong, and with 3 when the
machine lacks what it checks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from halldetect.claims.llama_extractor import LlamaExtractor
from halldetect.errors import HallDetectError
from halldetect.model_loading import BUNDLED_NLI, extractor_path
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.torch_model import TorchNliModel
from halldetect.settings import Settings

DEMO = Path(__file__).resolve().parent.parent / "cli" / "demo"
# Half precision moves a probability by less; a wrong kernel or layout moves it by much more.
MOST_DIFFERENCE = 0.02
BUDGETS = (2048, 8192, 32768, 131072, 524288, 2097152)
PAIRS = 4096


def sentences() -> list[str]:
    """Return the sentences of the shipped sources, as texts of many lengths."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(DEMO.glob("*.source.txt"))]
    return [part.strip() for text in texts for part in text.split(". ") if part.strip()]


def check_encoder(report: dict[str, Any]) -> None:
    """Compare fp16 on the device with fp32 on the CPU, then grow batches up to its memory."""
    import torch

    half = TorchNliModel.load(str(BUNDLED_NLI), device="cuda", dtype="float16")
    full = TorchNliModel.load(str(BUNDLED_NLI), device="cpu", dtype="float32")
    parts = sentences()
    ids = [text.ids for text in full.tokenizer.encode(parts)]
    draw = np.random.default_rng(1)
    pairs = draw.integers(0, len(ids), (256, 2))
    differences = np.abs(
        pair_probabilities(half, ids, ids, pairs) - pair_probabilities(full, ids, ids, pairs)
    )
    report["encoder"] = {
        "device": torch.cuda.get_device_name(),
        "dtype": half.provenance.dtype,
        "largest difference from fp32": float(differences.max()),
        "pairs": len(pairs),
    }
    many = draw.integers(0, len(ids), (PAIRS, 2))
    rows = []
    for budget in BUDGETS:
        pair_probabilities(half, ids, ids, many[:64], budget)
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        began = time.perf_counter()
        pair_probabilities(half, ids, ids, many, budget)
        torch.cuda.synchronize()
        rows.append(
            {
                "token budget": budget,
                "pairs/s": PAIRS / (time.perf_counter() - began),
                "peak MiB": torch.cuda.max_memory_allocated() / 2**20,
            }
        )
    report["encoder batches"] = rows


def check_memory(report: dict[str, Any]) -> None:
    """Leave the encoder too little memory for its batch; the probabilities must be the same."""
    import torch

    model = TorchNliModel.load(str(BUNDLED_NLI), device="cuda", dtype="float16")
    ids = [text.ids for text in model.tokenizer.encode(sentences())]
    pairs = np.random.default_rng(2).integers(0, len(ids), (2048, 2))
    roomy = pair_probabilities(model, ids, ids, pairs, 2**20)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    held = torch.cuda.memory_allocated()
    torch.cuda.set_per_process_memory_fraction((held + 64 * 2**20) / total)
    try:
        narrow = pair_probabilities(model, ids, ids, pairs, 2**20)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    report["out of memory"] = {
        "room MiB": 64,
        "largest difference": float(np.abs(roomy - narrow).max()),
    }


def check_extractor(report: dict[str, Any]) -> None:
    """Offload every layer and compare speed and output with the CPU."""
    import llama_cpp

    if not llama_cpp.llama_supports_gpu_offload():
        raise HallDetectError("llama-cpp-python is built without CUDA: see docs/operations.md")
    response = (DEMO / "ferry.response.txt").read_text(encoding="utf-8")
    rows = []
    for place, layers in (("cuda", -1), ("cpu", 0)):
        extractor = LlamaExtractor(extractor_path(Settings()), gpu_layers=layers)
        extractor.extract(response, 10)
        began = time.perf_counter()
        extraction = extractor.extract(response, 10)
        seconds = time.perf_counter() - began
        rows.append(
            {
                "where": place,
                "device": extractor.provenance.device,
                "tokens/s": extraction.output_tokens / seconds,
                "output": extraction.output,
            }
        )
    report["extractor"] = rows


def faults(report: dict[str, Any]) -> list[str]:
    """Say which results are wrong."""
    found = []
    if report["encoder"]["largest difference from fp32"] > MOST_DIFFERENCE:
        found.append("the encoder in fp16 differs from fp32")
    if report["out of memory"]["largest difference"] > MOST_DIFFERENCE:
        found.append("smaller batches changed the probabilities")
    if report["extractor"][0]["device"] == "cpu":
        found.append("the extractor did not run on the device")
    return found


def main() -> int:
    """Run the command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {}
    try:
        for check in (check_encoder, check_memory, check_extractor):
            check(report)
    except HallDetectError as error:
        print(error, file=sys.stderr)
        return 3
    report["faults"] = faults(report)
    text = json.dumps(report, indent=2, ensure_ascii=False)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
