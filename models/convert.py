"""Convert a 3-label Hugging Face BERT classifier to everything that HallDetect loads.

One command replaces the bundled model::

    python models/convert.py CHECKPOINT_DIR

It writes, into ``models/nli-minilm`` or ``--out``: the configuration and the tokenizer as they
are, ``model.safetensors`` in fp16, ``model.onnx`` (a graph that points into it), and
``manifest.json`` with sizes, SHA-256 digests and labels. Nothing is replaced before the new files
have been compared with torch in fp32.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from bert_graph import StoredWeights, build_bert_graph
from int8_graph import RowInt8Writer
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from halldetect.errors import HallDetectError
from halldetect.file_digest import sha256_of_file
from halldetect.nli.checkpoint import read_json
from halldetect.nli.classifier import encoder_limit, read_columns
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.model import NliModel
from halldetect.nli.onnx_model import OnnxNliModel
from halldetect.nli.torch_model import TorchNliModel

DEFAULT_OUT = Path(__file__).resolve().parent / "nli-minilm"
COPIED_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
# fp32 sums in another order differ in the last digits; anything above this is a wrong graph.
AGREEMENT = 1e-4
SENTENCES = (
    "The council approved the plan on Tuesday.",
    "Nobody on the council voted for the plan, which would have cost 4.2 million.",
    "A ferry crosses the bay twice a day, except in winter, when ice closes the harbour.",
    "Ice closes the harbour.",
    "Crème brûlée [SEP] 東京 ☃",
)


def main() -> None:
    """Read the command line and convert."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path, help="folder with config, tokenizer and weights")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="default: %(default)s")
    parser.add_argument("--int8", action="store_true", help="also write model.int8.onnx")
    arguments = parser.parse_args()
    try:
        convert(arguments.checkpoint, arguments.out, int8=arguments.int8)
    except (HallDetectError, ValueError, OSError) as error:
        sys.exit(f"convert: {error}")


def convert(checkpoint: Path, out: Path, *, int8: bool = False) -> None:
    """Convert `checkpoint` into `out`, which changes only when the result agrees with torch.

    Parameters
    ----------
    checkpoint : Path
        Folder of the Hugging Face checkpoint.
    out : Path
        Folder to write; its other files (the card) stay.
    int8 : bool
        Also write the quantised graph.

    Raises
    ------
    ValueError
        When the architecture is not supported, fp16 cannot hold the weights, or the graph and
        torch disagree.
    """
    config = read_json(checkpoint / "config.json")
    read_columns(config, checkpoint / "config.json", None)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        folder = Path(scratch) / out.name
        folder.mkdir()
        for name in COPIED_FILES:
            if (checkpoint / name).is_file():
                shutil.copyfile(checkpoint / name, folder / name)
        _store_half_precision(checkpoint / "model.safetensors", folder / "model.safetensors")
        onnx.save(build_bert_graph(folder), folder / "model.onnx")
        if int8:
            onnx.save(build_bert_graph(folder, RowInt8Writer), folder / "model.int8.onnx")
        _check_agreement(checkpoint, folder)
        _write_manifest(folder)
        _publish(folder, out)


def _store_half_precision(source: Path, target: Path) -> None:
    """Write the weights in fp16; a file that already is fp16 is copied byte for byte."""
    tensors = load_file(source)
    if all(tensor.dtype == torch.float16 for tensor in tensors.values()):
        shutil.copyfile(source, target)
    else:
        halves = {
            name: tensor.to(torch.float16).contiguous()
            for name, tensor in tensors.items()
            if tensor.is_floating_point()
        }
        broken = [name for name, tensor in halves.items() if not torch.isfinite(tensor).all()]
        if broken:
            raise ValueError(f"{source}: {broken[0]} has values that fp16 cannot hold")
        save_file(halves, target, metadata={"format": "pt"})
    StoredWeights(target)


def _check_agreement(checkpoint: Path, folder: Path) -> None:
    """Compare the new fp32 graph with torch on the same weights, and report both roundings."""
    before = _probabilities(TorchNliModel.load(str(checkpoint), device="cpu"))
    after = _probabilities(TorchNliModel.load(str(folder), device="cpu"))
    graph = _probabilities(OnnxNliModel.load(folder))
    difference = float(np.abs(graph - after).max())
    if not difference <= AGREEMENT:
        raise ValueError(
            f"the ONNX graph and torch differ by {difference:.2e} in a probability, more than "
            f"{AGREEMENT:g}; nothing was written"
        )
    print(f"fp16 storage against the checkpoint: {float(np.abs(after - before).max()):.1e}")
    print(f"ONNX against torch, both fp32:       {difference:.1e}")


def _probabilities(model: NliModel) -> np.ndarray:
    # Any two of the samples fit into the encoder; the last fills half of it.
    room = (model.max_tokens - model.tokenizer.overhead) // 2
    tokens = [text.ids[:room] for text in model.tokenizer.encode(SENTENCES)]
    tokens.append(np.concatenate(tokens * 8)[:room])
    pairs = np.array([(i, j) for i in range(len(tokens)) for j in range(len(SENTENCES))])
    return pair_probabilities(model, tokens, tokens, pairs)


def _write_manifest(folder: Path) -> None:
    config = read_json(folder / "config.json")
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
        for path in sorted(folder.iterdir())
    }
    manifest = {
        "labels": config["id2label"],
        "max_tokens": encoder_limit(config, folder / "config.json"),
        "files": files,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")


def _publish(folder: Path, out: Path) -> None:
    """Move the new files into place; a form that was not written again is removed as stale."""
    out.mkdir(exist_ok=True)
    for stale in out.glob("*.onnx"):
        stale.unlink()
    for path in sorted(folder.iterdir()):
        path.replace(out / path.name)
        print(f"{out / path.name}: {(out / path.name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
