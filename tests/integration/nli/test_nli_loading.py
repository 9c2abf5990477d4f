"""Loading: what is recorded, what is refused, and that nothing asks the network."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from halldetect.errors import ModelError
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.onnx_model import OnnxNliModel
from halldetect.nli.torch_model import TorchNliModel


def load_onnx(folder: Path) -> OnnxNliModel:
    return OnnxNliModel.load(folder, threads=1)


def load_torch(folder: Path) -> TorchNliModel:
    return TorchNliModel.load(str(folder), device="cpu")


Load = Callable[[Path], OnnxNliModel | TorchNliModel]
both_backends = pytest.mark.parametrize("load", [load_onnx, load_torch])


@pytest.fixture
def copied_model(bundled_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundled_folder, tmp_path / "copy"))


def refusal(load: Load, folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def without_manifest(folder: Path) -> Path:
    (folder / "manifest.json").unlink()
    return folder


@both_backends
def test_provenance_names_the_weights(load: Load, bundled_folder: Path) -> None:
    model = load(bundled_folder)
    digest = hashlib.sha256((bundled_folder / "model.safetensors").read_bytes()).hexdigest()
    assert model.provenance.revision == f"sha256:{digest}"
    assert model.provenance.dtype == "float32"
    assert model.provenance.device == "cpu"
    assert set(model.provenance.libraries) >= {"tokenizers"}
    assert model.max_tokens == 512


@both_backends
@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json"])
def test_a_missing_file_is_named(load: Load, copied_model: Path, missing: str) -> None:
    (copied_model / missing).unlink()
    assert missing in refusal(load, copied_model)


@both_backends
def test_an_empty_folder_is_refused(load: Load, tmp_path: Path) -> None:
    assert "config.json" in refusal(load, tmp_path)


@both_backends
def test_no_folder_at_all_is_refused(load: Load, tmp_path: Path) -> None:
    assert "no such" in refusal(load, tmp_path / "nowhere")


@both_backends
def test_a_file_in_place_of_a_folder_is_refused(load: Load, bundled_folder: Path) -> None:
    assert "give its folder" in refusal(load, bundled_folder / "model.safetensors")


@both_backends
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\xff\xfe\x00"])
def test_a_broken_text_file_is_refused(
    load: Load, copied_model: Path, name: str, content: bytes
) -> None:
    (copied_model / name).write_bytes(content)
    assert name in refusal(load, copied_model)


@both_backends
@pytest.mark.parametrize("kept", [0, 5, 1000, 1_000_000])
def test_truncated_weights_are_refused(load: Load, copied_model: Path, kept: int) -> None:
    """With the manifest the digest differs; without it the library's own error is told."""
    weights = copied_model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    assert "SHA-256" in refusal(load, copied_model)
    assert "cannot load" in refusal(load, without_manifest(copied_model))


@both_backends
def test_weights_of_another_model_are_refused(load: Load, copied_model: Path) -> None:
    weights = copied_model / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    assert "SHA-256" in refusal(load, copied_model)


@pytest.mark.parametrize("content", [b"", b"\x00" * 4096, b"not a graph"])
def test_a_broken_graph_is_refused(copied_model: Path, content: bytes) -> None:
    (copied_model / "model.onnx").write_bytes(content)
    assert "SHA-256" in refusal(load_onnx, copied_model)
    assert "cannot load" in refusal(load_onnx, without_manifest(copied_model))


def test_a_truncated_graph_is_refused(copied_model: Path) -> None:
    graph = without_manifest(copied_model) / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:-2000])
    assert "cannot load" in refusal(load_onnx, copied_model)


@both_backends
def test_two_labels_are_refused(load: Load, copied_model: Path) -> None:
    config = json.loads((copied_model / "config.json").read_text())
    config["id2label"] = {"0": "entailment", "1": "not_entailment"}
    (copied_model / "config.json").write_text(json.dumps(config))
    assert "has 2 labels" in refusal(load, copied_model)


def test_a_form_that_is_not_there_is_named(copied_model: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.int8\.onnx is missing"):
        OnnxNliModel.load(copied_model, form="int8")
    with pytest.raises(ModelError, match="unknown ONNX form 'fp8'"):
        OnnxNliModel.load(copied_model, form="fp8")


def test_pickled_weights_are_never_loaded(tiny_bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "pickled"))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pickle" in refusal(load_torch, folder)


def test_a_checkpoint_without_its_head_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(tiny_bert, tmp_path / "headless"))
    tensors = load_file(folder / "model.safetensors")
    body = {name: tensor for name, tensor in tensors.items() if "classifier" not in name}
    save_file(body, folder / "model.safetensors", metadata={"format": "pt"})
    assert "no weights for classifier" in refusal(load_torch, folder)


def test_the_torch_path_runs_deberta(tiny_deberta: Path) -> None:
    model = load_torch(tiny_deberta)
    assert model.max_tokens == 64
    found = classify_letters(model)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(classify_letters(model), found)


def test_roberta_reads_less_than_its_position_table(tiny_roberta: Path) -> None:
    model = load_torch(tiny_roberta)
    assert model.max_tokens == 65  # 66 positions, counted from the padding id 0 + 1 on
    longest = np.full(model.max_tokens - model.tokenizer.overhead - 1, 9, np.int32)
    pair_probabilities(model, [longest], [longest[:1]], np.array([(0, 0)]))


def classify_letters(model: TorchNliModel) -> np.ndarray:
    texts = [text.ids for text in model.tokenizer.encode(["a b c.", "a bc", "[SEP] d"])]
    return pair_probabilities(
        model, texts, texts, np.array([(i, j) for i in (0, 1, 2) for j in (0, 1, 2)])
    )


def test_labels_that_say_nothing_need_a_mapping(unnamed_bert: Path) -> None:
    assert "HALLDETECT_NLI_LABELS" in refusal(load_torch, unnamed_bert)
    mapping = {"LABEL_0": "contradiction", "LABEL_1": "neutral", "LABEL_2": "entailment"}
    reverse = {"LABEL_0": "entailment", "LABEL_1": "neutral", "LABEL_2": "contradiction"}
    one, other = (
        classify_letters(TorchNliModel.load(str(unnamed_bert), label_mapping=labels))
        for labels in (mapping, reverse)
    )
    np.testing.assert_array_equal(one, other[:, ::-1])


def test_two_label_checkpoints_are_refused(two_label_bert: Path) -> None:
    assert "has 2 labels" in refusal(load_torch, two_label_bert)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_overflow_runs_again_in_fp32(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, dtype: str
) -> None:
    exact = classify_letters(load_torch(tiny_bert))
    model = TorchNliModel.load(str(tiny_bert), device="cpu", dtype=dtype)
    original = TorchNliModel._forward

    def overflow(self: TorchNliModel, network: torch.nn.Module, batch: object) -> np.ndarray:
        logits = original(self, network, batch)
        return logits * np.nan if next(network.parameters()).dtype != torch.float32 else logits

    monkeypatch.setattr(TorchNliModel, "_forward", overflow)
    np.testing.assert_allclose(classify_letters(model), exact, atol=1e-5)
    assert "runs again in float32" in caplog.text
    assert model.provenance.dtype == dtype


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"dtype": "int4"}, "unknown dtype 'int4'"),
        ({"revision": "main"}, "has no revisions"),
    ],
)
def test_an_option_that_cannot_be_met_is_refused(
    tiny_bert: Path, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ModelError, match=complaint):
        TorchNliModel.load(str(tiny_bert), **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_without_cuda_is_refused(tiny_bert: Path) -> None:
    with pytest.raises(ModelError, match="sees no CUDA device"):
        TorchNliModel.load(str(tiny_bert), device="cuda")


@pytest.mark.parametrize("location", ["nobody/no-such-model", "no-such-model"])
def test_a_hub_model_that_cannot_be_fetched_is_one_error_at_once(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sockets are blocked in all tests, so the hub is out of reach."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits and tries again"))
    with pytest.raises(ModelError, match="download failed") as caught:
        TorchNliModel.load(location)
    assert "\n" not in str(caught.value)
    assert "give a local folder" in str(caught.value)


def test_a_hub_model_is_not_fetched_where_downloads_are_off() -> None:
    with pytest.raises(ModelError, match="set HALLDETECT_NLI_MODEL"):
        TorchNliModel.load("nobody/no-such-model", may_download=False)


@pytest.mark.parametrize(
    "location", ["./nowhere", "/nowhere/model", "~/nowhere", "a/b/c", "a..b/c"]
)
def test_a_path_is_never_taken_for_a_hub_id(location: str) -> None:
    with pytest.raises(ModelError, match="check the path"):
        TorchNliModel.load(location)


def test_the_onnx_path_imports_no_torch(bundled_folder: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from halldetect.nli.onnx_model import OnnxNliModel\n"
        f"OnnxNliModel.load(Path({str(bundled_folder)!r}))\n"
        "assert not {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=bundled_folder.parents[1])
