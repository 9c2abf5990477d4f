"""The tokenizer alone, as a worker that only extracts needs it: no weights are read or fetched."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import constants

from halldetect.errors import ModelError
from halldetect.model_loading import load_nli, load_pair_tokenizer
from halldetect.settings import Settings

TEXT = "Übergröße costs $4.2 million [SEP] \u4e2d."
COMMIT = "0" * 39 + "1"


@pytest.fixture
def without_weights(bundled_folder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "encoder"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(bundled_folder / name, folder)
    return folder


@pytest.fixture
def hub_cache(without_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the folder into a hub cache, as if someone had only fetched these two files."""
    model = tmp_path / "hub" / "models--owner--encoder"
    shutil.copytree(without_weights, model / "snapshots" / COMMIT)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return "owner/encoder"


def test_it_is_the_encoders_own(bundled_folder: Path) -> None:
    alone, whole = load_pair_tokenizer(Settings()), load_nli(Settings(threads=1)).tokenizer
    file = (bundled_folder / "tokenizer.json").read_bytes()
    assert alone.digest == whole.digest == hashlib.sha256(file).hexdigest()
    np.testing.assert_array_equal(alone.encode([TEXT])[0].ids, whole.encode([TEXT])[0].ids)


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_a_folder_needs_no_weights(without_weights: Path, backend: str) -> None:
    settings = Settings(nli=backend, nli_model=str(without_weights))
    assert load_pair_tokenizer(settings).digest == load_pair_tokenizer(Settings()).digest
    with pytest.raises(ModelError):
        load_nli(settings)


def test_a_model_of_the_hub_needs_no_weights_either(hub_cache: str) -> None:
    settings = Settings(nli="torch", nli_model=hub_cache)
    assert load_pair_tokenizer(settings).digest == load_pair_tokenizer(Settings()).digest
    with pytest.raises(ModelError, match=r"has no model\.safetensors"):
        load_nli(settings)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json"])
def test_what_is_missing_is_named(without_weights: Path, missing: str) -> None:
    (without_weights / missing).unlink()
    with pytest.raises(ModelError, match=missing):
        load_pair_tokenizer(Settings(nli_model=str(without_weights)))
