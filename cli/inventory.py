"""What is installed, found without loading a model or touching the network."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel

from halldetect.errors import ModelError
from halldetect.file_digest import sha256_of_file
from halldetect.model_loading import BUNDLED_NLI, extractor_path, nli_choice
from halldetect.nli.checkpoint import (
    CONFIG_FILE,
    MANIFEST_FILE,
    ONNX_FORMS,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    check_digests,
    read_json,
)
from halldetect.nli.classifier import encoder_limit
from halldetect.settings import ExtractorBackend, NliBackend, Profile, Settings, load_settings

_LIBRARIES = (
    "onnxruntime",
    "tokenizers",
    "llama-cpp-python",
    "torch",
    "transformers",
)
_FORM_OF_FILE = {
    WEIGHTS_FILE: "weights",
    TOKENIZER_FILE: "tokenizer",
    **{file: f"onnx {form}" for form, (file, _) in ONNX_FORMS.items()},
}


class ModelFile(BaseModel):
    """One file of a model; `intact` is None where nothing says what its digest should be."""

    path: str
    role: str
    bytes: int
    sha256: str
    intact: bool | None


class BundledNli(BaseModel):
    """The encoder that comes with the program."""

    path: str
    files: list[ModelFile]
    labels: list[str]
    max_tokens: int | None
    fault: str | None


class Extractor(BaseModel):
    """The GGUF file that the settings name, or why there is none."""

    file: ModelFile | None
    fault: str | None


class ProfileState(BaseModel):
    """What a profile still needs; complete when `lacks` is empty."""

    profile: Profile
    lacks: list[str]


class Inventory(BaseModel):
    """Everything `halldetect models` shows."""

    nli: BundledNli
    extractor: Extractor
    libraries: dict[str, str | None]
    profiles: list[ProfileState]


def take_inventory(profiles: list[Profile]) -> Inventory:
    """Look at every file and library, for the given profiles.

    Raises
    ------
    InputError
        When a setting in the environment cannot be used.
    """
    return Inventory(
        nli=_bundled_nli(),
        extractor=_bundled_extractor(),
        libraries={name: _version(name) for name in _LIBRARIES},
        profiles=[
            ProfileState(profile=profile, lacks=list(_lacks(load_settings(profile=profile))))
            for profile in profiles
        ],
    )


def _bundled_nli() -> BundledNli:
    labels: list[str] = []
    max_tokens = None
    fault = None
    digests: dict[str, str] = {}
    try:
        config = read_json(BUNDLED_NLI / CONFIG_FILE)
        labels = [str(label) for label in config.get("id2label", {}).values()]
        max_tokens = encoder_limit(config, BUNDLED_NLI / CONFIG_FILE)
        listed = read_json(BUNDLED_NLI / MANIFEST_FILE).get("files", {})
        digests = {name: entry["sha256"] for name, entry in listed.items()}
    except ModelError as error:
        fault = str(error)
    files = [
        _model_file(BUNDLED_NLI / name, role, digests.get(name))
        for name, role in _FORM_OF_FILE.items()
        if (BUNDLED_NLI / name).is_file()
    ]
    return BundledNli(
        path=str(BUNDLED_NLI), files=files, labels=labels, max_tokens=max_tokens, fault=fault
    )


def _bundled_extractor() -> Extractor:
    try:
        bundled = {"profile": Profile.EMBEDDED, "extractor_model": None}
        path = extractor_path(load_settings().model_copy(update=bundled))
        return Extractor(file=_model_file(path, "extractor", None), fault=None)
    except ModelError as error:
        return Extractor(file=None, fault=str(error))
    except OSError as error:
        return Extractor(file=None, fault=f"{error.filename}: {error.strerror}")


def _model_file(path: Path, role: str, expected: str | None) -> ModelFile:
    digest = sha256_of_file(path)
    return ModelFile(
        path=str(path),
        role=role,
        bytes=path.stat().st_size,
        sha256=digest,
        intact=None if expected is None else digest == expected,
    )


def _lacks(settings: Settings) -> Iterator[str]:
    yield from _nli_lacks(settings)
    if settings.extractor is ExtractorBackend.LLAMA:
        if not _is_importable("llama_cpp"):
            yield (
                "llama-cpp-python: run `make install`, or `pip install 'halldetect[llama]'`, or "
                "use --extractor sentences"
            )
        yield from _gguf_lacks(settings)


def _nli_lacks(settings: Settings) -> Iterator[str]:
    choice = nli_choice(settings)
    folder = Path(choice.location).expanduser()
    if choice.backend is NliBackend.ONNX:
        wanted = [CONFIG_FILE, TOKENIZER_FILE, ONNX_FORMS.get(settings.nli_form, ("?",))[0]]
        if not _is_importable("onnxruntime"):
            yield "onnxruntime: `pip install onnxruntime`"
    else:
        wanted = [CONFIG_FILE, TOKENIZER_FILE]
        if not (_is_importable("torch") and _is_importable("transformers")):
            yield "torch and transformers: `pip install 'halldetect[torch]'`"
        if not folder.is_dir():
            if not _is_cached(choice.location, settings.nli_revision):
                yield (
                    f"the NLI model {choice.location}: set HALLDETECT_NLI_MODEL to a folder with "
                    "the checkpoint, or to the hub id itself to have it fetched"
                )
            return
        if not any(folder.glob("*.safetensors")):
            wanted.append(WEIGHTS_FILE)
    for name in wanted:
        if not (folder / name).is_file():
            yield f"{folder / name}: set HALLDETECT_NLI_MODEL to a complete model folder"
            return
    try:
        check_digests(folder, (*wanted, WEIGHTS_FILE))
    except ModelError as error:
        yield str(error)


def _gguf_lacks(settings: Settings) -> Iterator[str]:
    name = settings.extractor_model
    if name is not None and not Path(name).expanduser().is_file():
        owner_and_repository, _, file = name.rpartition("/")
        if not _is_cached(owner_and_repository, None, file):
            yield f"the GGUF file {name}: set HALLDETECT_EXTRACTOR_MODEL to one that is there"
        return
    try:
        path = extractor_path(settings)
    except ModelError as error:
        yield str(error)
        return
    if not path.is_file():
        yield f"{path}: run `make install`, or set HALLDETECT_EXTRACTOR_MODEL to a GGUF file"


def _is_cached(hub_id: str, revision: str | None, file: str = CONFIG_FILE) -> bool:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(hub_id, file, revision=revision)
    except HFValidationError:
        return False
    if not isinstance(found, str):
        return False
    return file != CONFIG_FILE or any(Path(found).parent.glob("*.safetensors"))


def _is_importable(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
