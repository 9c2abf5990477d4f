"""The scripts under models/: train on a few pairs, convert, measure, all with a tiny encoder."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.onnx_model import OnnxNliModel

LABELS = ("entailment", "neutral", "contradiction", "not_entailment")


def run_script(root: Path, name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "models" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def root(bundled_folder: Path) -> Path:
    return bundled_folder.parents[1]


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl.gz"
    rows = [
        {
            "premise": f"the cat {number} sat.",
            "hypothesis": "a cat sat.",
            "label": LABELS[number % 4],
        }
        for number in range(40)
    ]
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    return path


@pytest.fixture(scope="module")
def trained(
    root: Path, pair_file: Path, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("trained") / "checkpoint"
    options = ("--max-tokens", 40, "--batch-size", 8, "--evaluate", pair_file)
    run = run_script(root, "train.py", tiny_bert, out, pair_file, *options)
    assert run.returncode == 0, run.stderr
    assert "40 pairs" in run.stdout
    assert "accuracy" in run.stdout
    return out


def test_a_trained_checkpoint_converts_in_one_command(
    root: Path, trained: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    run = run_script(root, "convert.py", trained, "--out", out, "--int8")
    assert run.returncode == 0, run.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["files"]) >= {"model.onnx", "model.int8.onnx", "model.safetensors"}
    for form in ("fp32", "int8"):
        model = OnnxNliModel.load(out, form, threads=1)
        _assert_independent_of_batch(model)


def _assert_independent_of_batch(model: OnnxNliModel) -> None:
    texts = [text.ids for text in model.tokenizer.encode(["a b c d e f g", "a.", "the cat sat"])]
    pairs = np.array([(i, j) for i in range(3) for j in range(3)])
    together = pair_probabilities(model, texts, texts, pairs)
    for row, pair in enumerate(pairs):
        alone = pair_probabilities(model, texts, texts, pair[None])
        np.testing.assert_allclose(alone[0], together[row], rtol=0, atol=1e-5)


def test_measured_forms_are_a_table(
    root: Path, trained: Path, pair_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    assert run_script(root, "convert.py", trained, "--out", out).returncode == 0
    run = run_script(root, "measure_forms.py", "--model", out, "--pairs", pair_file)
    assert run.returncode == 0, run.stderr
    assert "| onnx fp32 |" in run.stdout
    assert "10 with other labels left out" in run.stderr


def test_another_architecture_is_refused_and_nothing_is_written(
    root: Path, tiny_deberta: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    run = run_script(root, "convert.py", tiny_deberta, "--out", out)
    assert run.returncode == 1
    assert "Use the torch backend" in run.stderr
    assert not out.exists()


def test_an_unknown_label_stops_training(root: Path, tiny_bert: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"premise": "a", "hypothesis": "b", "label": "perhaps"}))
    run = run_script(root, "train.py", tiny_bert, tmp_path / "out", pairs)
    assert run.returncode != 0
    assert "unknown label 'perhaps'" in run.stderr
