"""The one settings object: profile, models, limits; from HALLDETECT_* environment variables."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from halldetect.claims.model import ExtractionMode
from halldetect.errors import InputError
from halldetect.nli.batching import DEFAULT_TOKEN_BUDGET

_PREFIX = "HALLDETECT_"


class Profile(StrEnum):
    """A coherent choice of both models and a policy."""

    EMBEDDED = "embedded"
    PAPER = "paper"


class ExtractorBackend(StrEnum):
    """Who proposes claims."""

    LLAMA = "llama"
    SENTENCES = "sentences"


class NliBackend(StrEnum):
    """What runs the encoder."""

    ONNX = "onnx"
    TORCH = "torch"


class Settings(BaseSettings):
    """Everything that can be chosen; each field is the variable ``HALLDETECT_<FIELD>``.

    Parameters
    ----------
    profile : Profile
        ``embedded``: bundled models on a CPU. ``paper``: the paper's models.
    policy : str or None
        Policy to score with; None takes the profile's.
    extractor : ExtractorBackend
        ``llama`` or ``sentences``.
    extractor_model : str or None
        GGUF file, or ``owner/repository/file.gguf`` on the hub; None takes the profile's.
    extractor_mode : ExtractionMode
        ``covered``, or ``paper`` for the paper's single pass without repair.
    extractor_gpu_layers : int or None
        Layers to offload, -1 for all; None takes the profile's (0 and -1).
    extractor_context_tokens : int
        Context of the extractor, in tokens.
    nli : NliBackend or None
        ``onnx`` or ``torch``; None takes the profile's.
    nli_model : str or None
        Folder of a checkpoint, or (torch) a hub id; None takes the profile's.
    nli_revision : str or None
        Commit of the hub id.
    nli_labels : dict or None
        Names of the model's labels for entailment, neutral and contradiction, if unusual.
    nli_form : str
        Form of the bundled ONNX weights.
    nli_device, nli_dtype : str
        For torch: ``auto``, ``cpu``, ``cuda``; ``auto``, ``float32``, ``float16``, ``bfloat16``.
    threads : int or None
        CPU threads of each model; None leaves it to the backend.
    token_budget : int
        Most padded tokens in one forward pass of the encoder.
    preselected_spans : int or None
        Spans that BM25 chooses for each claim; None checks every span.
    max_characters, max_sentences : int
        Largest source or response.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="ignore", frozen=True)

    profile: Profile = Profile.EMBEDDED
    policy: str | None = None
    extractor: ExtractorBackend = ExtractorBackend.LLAMA
    extractor_model: str | None = None
    extractor_mode: ExtractionMode = ExtractionMode.COVERED
    extractor_gpu_layers: int | None = None
    extractor_context_tokens: int = Field(default=4096, ge=1024)
    nli: NliBackend | None = None
    nli_model: str | None = None
    nli_revision: str | None = None
    nli_labels: dict[str, str] | None = None
    nli_form: str = "fp32"
    nli_device: str = "auto"
    nli_dtype: str = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)
    token_budget: int = Field(default=DEFAULT_TOKEN_BUDGET, ge=512)
    preselected_spans: int | None = Field(default=None, ge=1)
    max_characters: int = Field(default=4_000_000, ge=1)
    max_sentences: int = Field(default=50_000, ge=1)

    @property
    def policy_name(self) -> str:
        """The chosen policy, or the profile's."""
        return self.policy or self.profile.value


def load_settings(**overrides: Any) -> Settings:
    """Read the environment and apply `overrides` that are not None.

    Raises
    ------
    InputError
        Naming every variable that cannot be used or is no setting: a misspelt one would otherwise
        be ignored in silence.
    """
    variables = {
        name.removeprefix(_PREFIX).lower() for name in os.environ if name.startswith(_PREFIX)
    }
    unknown = sorted((overrides.keys() | variables) - Settings.model_fields.keys())
    if unknown:
        raise InputError(
            f"no setting is called {', '.join(unknown)}; there are: "
            f"{', '.join(sorted(Settings.model_fields))}"
        )
    chosen = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**chosen)
    except ValidationError as error:
        faults = [
            f"HALLDETECT_{'.'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        ]
        raise InputError("; ".join(faults)) from None
