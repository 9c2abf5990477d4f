import hashlib
import io
import json

import pytest
from rich.console import Console

from cli import inventory, models_command
from cli.inventory import take_inventory
from halldetect.settings import Profile

CONFIG = {
    "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"},
    "max_position_embeddings": 128,
}


@pytest.fixture
def nli_folder(tmp_path, monkeypatch):
    """A folder that looks like the bundled encoder, with a manifest that is right."""
    folder = tmp_path / "nli"
    folder.mkdir()
    contents = {
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer.json": b"{}",
        "model.onnx": b"graph",
        "model.safetensors": b"weights",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    digests = {name: {"sha256": hashlib.sha256(c).hexdigest()} for name, c in contents.items()}
    (folder / "manifest.json").write_text(json.dumps({"files": digests}))
    monkeypatch.setattr(inventory, "BUNDLED_NLI", folder)
    monkeypatch.setenv("HALLDETECT_NLI_MODEL", str(folder))
    monkeypatch.setenv("HALLDETECT_EXTRACTOR", "sentences")
    return folder


def shown(found):
    stream = io.StringIO()
    models_command._print(Console(file=stream, width=200, markup=False), found)
    return stream.getvalue()


def lacks_of(found):
    return found.profiles[0].lacks


def test_a_complete_folder_lacks_nothing(nli_folder):
    found = take_inventory([Profile.EMBEDDED])
    assert found.nli.fault is None
    assert found.nli.labels == ["contradiction", "entailment", "neutral"]
    assert found.nli.max_tokens == 128
    assert [file.intact for file in found.nli.files] == [True] * 3
    assert lacks_of(found) == []
    assert "profile embedded: complete" in shown(found)


def test_a_replaced_file_is_seen(nli_folder):
    (nli_folder / "model.safetensors").write_bytes(b"other")
    found = take_inventory([Profile.EMBEDDED])
    assert [file.intact for file in found.nli.files] == [False, True, True]
    assert "damaged or was replaced" in lacks_of(found)[0]
    assert "differs from the manifest" in shown(found)


def test_a_missing_file_is_named(nli_folder):
    (nli_folder / "model.onnx").unlink()
    found = take_inventory([Profile.EMBEDDED])
    assert lacks_of(found) == [
        f"{nli_folder / 'model.onnx'}: set HALLDETECT_NLI_MODEL to a complete model folder"
    ]


def test_a_missing_folder_is_a_fault_and_no_crash(nli_folder, monkeypatch):
    monkeypatch.setattr(inventory, "BUNDLED_NLI", nli_folder / "none")
    found = take_inventory([Profile.EMBEDDED])
    assert found.nli.files == []
    assert "cannot be read" in shown(found)


def test_libraries_that_are_not_installed_are_said_to_be_missing(nli_folder, monkeypatch):
    monkeypatch.setattr(inventory, "_is_importable", lambda _: False)
    monkeypatch.setattr(inventory, "_version", lambda _: None)
    monkeypatch.setenv("HALLDETECT_EXTRACTOR", "llama")
    found = take_inventory([Profile.EMBEDDED])
    lacks = "\n".join(lacks_of(found))
    assert "onnxruntime: " in lacks
    assert "llama-cpp-python: " in lacks
    assert "not installed" in shown(found)
    monkeypatch.setenv("HALLDETECT_NLI", "torch")
    assert "torch and transformers: " in "\n".join(lacks_of(take_inventory([Profile.EMBEDDED])))


@pytest.mark.parametrize("name", ["owner/model", "not a hub id", "/no/such/folder"])
def test_a_torch_model_that_is_neither_here_nor_cached(nli_folder, monkeypatch, name):
    monkeypatch.setenv("HALLDETECT_NLI", "torch")
    monkeypatch.setenv("HALLDETECT_NLI_MODEL", name)
    assert f"the NLI model {name}: " in lacks_of(take_inventory([Profile.EMBEDDED]))[0]


@pytest.mark.parametrize("name", ["none.gguf", "owner/repository/file.gguf", "/no/such.gguf"])
def test_a_gguf_file_that_is_neither_here_nor_cached(nli_folder, monkeypatch, name):
    monkeypatch.setenv("HALLDETECT_EXTRACTOR", "llama")
    monkeypatch.setenv("HALLDETECT_EXTRACTOR_MODEL", name)
    assert f"the GGUF file {name}: " in "\n".join(lacks_of(take_inventory([Profile.EMBEDDED])))


def test_the_bundled_extractor_may_be_missing(nli_folder, monkeypatch):
    monkeypatch.setattr("halldetect.model_loading._GGUF_PACKAGE", "no_such_package")
    found = take_inventory([Profile.EMBEDDED])
    assert found.extractor.file is None
    assert "the bundled extractor is not installed" in shown(found)
