"""The very models that a trail names, or what is missing of them.

What computed is told by digests and commits, not by where it lies: a folder may have another name
here, and the settings may point elsewhere by now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from halldetect.claims.extractor import ClaimExtractor
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.errors import ModelError
from halldetect.file_digest import sha256_of_file
from halldetect.model_loading import (
    BUNDLED_NLI,
    PAPER_NLI,
    extractor_path,
    load_extractor,
    load_nli,
)
from halldetect.nli.checkpoint import ONNX_FORMS, WEIGHTS_FILE, file_digest, weights_identity
from halldetect.nli.model import NliModel
from halldetect.settings import ExtractorBackend, NliBackend, Profile, Settings

_DIGEST = "sha256:"
_AUTO = "auto"


def load_named_nli(named: Mapping[str, Any], settings: Settings) -> NliModel:
    """Load the encoder that a trail names.

    Parameters
    ----------
    named : mapping
        Its provenance.
    settings : Settings
        Where else to look: `nli_model`. Device and numeric form are the trail's unless set.

    Raises
    ------
    ModelError
        Saying what the trail names, what is here instead, and what to set.
    """
    if named["backend"] == NliBackend.ONNX:
        chosen = _onnx_settings(named, settings)
    elif named["backend"] == NliBackend.TORCH:
        chosen = _torch_settings(named, settings)
    else:
        raise ModelError(f"{_described('NLI model', named)}: this version has no such backend")
    try:
        model = load_nli(chosen)
    except ModelError as error:
        raise ModelError(f"{_described('NLI model', named)}: {error}") from None
    if model.provenance.revision != named["revision"]:
        raise ModelError(
            f"{_described('NLI model', named)}: what is here is {model.provenance.revision}"
        )
    return model


def load_named_extractor(named: Mapping[str, Any], settings: Settings) -> ClaimExtractor:
    """Load the extractor that a trail names; see `load_named_nli`.

    Raises
    ------
    ModelError
        Saying what the trail names, what is here instead, and what to set.
    """
    if named["backend"] == ExtractorBackend.SENTENCES:
        return SentenceExtractor()
    if named["backend"] != ExtractorBackend.LLAMA:
        raise ModelError(f"{_described('extractor', named)}: this version has no such backend")
    path = _named_gguf(named, settings)
    layers = 0 if named["device"] == "cpu" else (settings.extractor_gpu_layers or -1)
    chosen = settings.model_copy(
        update={
            "extractor": ExtractorBackend.LLAMA,
            "extractor_model": str(path),
            "extractor_gpu_layers": layers,
        }
    )
    try:
        return load_extractor(chosen)
    except ModelError as error:
        raise ModelError(f"{_described('extractor', named)}: {error}") from None


def differences(named: Mapping[str, Any], loaded: Mapping[str, Any]) -> list[str]:
    """Say in what a loaded model is not as the trail has it, though its weights are the same."""
    told = [
        f"{field}: {named[field]} then, {loaded[field]} now"
        for field in ("name", "dtype", "device", "max_tokens")
        if named.get(field) != loaded.get(field)
    ]
    then, now = named.get("libraries", {}), loaded.get("libraries", {})
    told += [
        f"{library}: {then.get(library, 'none')} then, {now.get(library, 'none')} now"
        for library in sorted(then.keys() | now.keys())
        if then.get(library) != now.get(library)
    ]
    return told


def _onnx_settings(named: Mapping[str, Any], settings: Settings) -> Settings:
    forms = {dtype: (form, graph) for form, (graph, dtype) in ONNX_FORMS.items()}
    if named["dtype"] not in forms:
        raise ModelError(f"{_described('NLI model', named)}: this version has no such form")
    form, graph = forms[named["dtype"]]
    folder = _named_folder(named, settings, lambda folder: _onnx_digest(folder, graph))
    return settings.model_copy(
        update={
            "profile": Profile.EMBEDDED,
            "nli": NliBackend.ONNX,
            "nli_model": str(folder),
            "nli_form": form,
        }
    )


def _torch_settings(named: Mapping[str, Any], settings: Settings) -> Settings:
    revision = str(named["revision"])
    location, commit = settings.nli_model, None if revision.startswith(_DIGEST) else revision
    if revision.startswith(_DIGEST):
        location = str(_named_folder(named, settings, _weights_digest))
    elif settings.nli_model is None and named["name"] != PAPER_NLI:
        raise ModelError(
            f"{_described('NLI model', named)}: set HALLDETECT_NLI_MODEL={named['name']} to load "
            "it from the hub's cache or to fetch it"
        )
    return settings.model_copy(
        update={
            "profile": Profile.PAPER,
            "nli": NliBackend.TORCH,
            "nli_model": location,
            "nli_revision": commit,
            "nli_device": _set_or(settings.nli_device, named["device"]),
            "nli_dtype": _set_or(settings.nli_dtype, named["dtype"]),
        }
    )


def _named_folder(
    named: Mapping[str, Any], settings: Settings, digest: Callable[[Path], str]
) -> Path:
    """Return the first known folder whose weights are those that the trail names."""
    wanted = str(named["revision"]).removeprefix(_DIGEST)
    set_here = [] if settings.nli_model is None else [Path(settings.nli_model).expanduser()]
    found = []
    for folder in [*set_here, BUNDLED_NLI]:
        try:
            there = digest(folder)
        except ModelError as error:
            found.append(str(error))
            continue
        if there == wanted:
            return folder
        found.append(f"{folder} has {_DIGEST}{there}")
    raise ModelError(
        f"{_described('NLI model', named)}: it is not here ({'; '.join(found)}); set "
        "HALLDETECT_NLI_MODEL to the folder that holds it"
    )


def _onnx_digest(folder: Path, graph: str) -> str:
    weights = folder / WEIGHTS_FILE
    return file_digest(weights if weights.is_file() else folder / graph)


def _weights_digest(folder: Path) -> str:
    return weights_identity(folder).sha256


def _named_gguf(named: Mapping[str, Any], settings: Settings) -> Path:
    """Return the first known GGUF file that is the one that the trail names."""
    wanted = str(named["revision"]).removeprefix(_DIGEST)
    bundled = settings.model_copy(update={"profile": Profile.EMBEDDED, "extractor_model": None})
    found = []
    for place in [settings, bundled]:
        try:
            path = extractor_path(place)
            there = sha256_of_file(path)
        except ModelError as error:
            found.append(str(error))
        except OSError as error:
            found.append(f"{error.filename}: {error.strerror}")
        else:
            if there == wanted:
                return path
            found.append(f"{path} has {_DIGEST}{there}")
    raise ModelError(
        f"{_described('extractor', named)}: it is not here ({'; '.join(dict.fromkeys(found))}); "
        "set HALLDETECT_EXTRACTOR_MODEL to the GGUF file"
    )


def _set_or(setting: str, recorded: str) -> str:
    return recorded if setting == _AUTO else setting


def _described(kind: str, named: Mapping[str, Any]) -> str:
    parts = [named["backend"], named["dtype"], named["device"], named["revision"]]
    details = ", ".join(str(part) for part in parts if part)
    return f"the {kind} {named['name']} ({details})"
