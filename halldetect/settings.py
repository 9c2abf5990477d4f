"""The one settings object: profile, models, limits; from HALLDETECT_* environment variables."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from halldetect.claims.model import ExtractionMode
from halldetect.errors import InputError
from halldetect.loopback import is_loopback
from halldetect.nli.batching import DEFAULT_TOKEN_BUDGET
from halldetect.webhook_targets import AllowedTargets
from halldetect.wording import fault_message

_PREFIX = "HALLDETECT_"
# More than anybody means: what is larger would fit into no column and no library's numbers, and be
# a fault of something else later.
_DAY = 86_400
_MOST = 2**31 - 1
_MOST_BYTES = 2**50
_UPLOADS_AT_ONCE = 4  # of the largest size, unless a setting says otherwise


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
    extractor_seconds : float
        How long the extractor may take over one response; what it has not read by then is audited
        sentence by sentence.
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
    home : Path
        Data and logs of the embedded stack.
    database_url, redis_url : SecretStr or None
        Servers to use, also read from ``DATABASE_URL`` and ``REDIS_URL``; None means those of the
        embedded stack.
    api_url : str or None
        Where the client commands find the API; None means the embedded stack's.
    api_host, api_port, flower_port
        Where the API and Flower listen.
    metrics_host, metrics_port
        Where a worker serves its figures for Prometheus; without a port it does not.
    api_keys_required : bool or None
        Whether the API asks for API keys; None means that it does unless it listens on loopback.
    api_key : SecretStr or None
        What the client commands send to an API that asks for a key.
    max_batch_lines, max_upload_bytes : int
        Largest batch; bytes count after decompression.
    max_spooled_bytes : int or None
        What all batches that an API process is taking in may have on its disk together; None is
        four times the largest one.
    max_body_bytes : int
        Largest JSON body of any other request.
    max_waiting_audits : int
        Most audits that may wait; more are refused until workers have caught up.
    max_waiting_audits_per_key : int or None
        Most of them that one API key may have submitted; None bounds no key by itself.
    requests_per_minute : int
        Requests that one API key may make; as many may come at once.
    stalled_client_seconds : int
        How long a client of the API may send or read next to nothing before it is cut off.
    max_listed_errors : int
        Most faulty lines that the refusal of a batch lists.
    lease_seconds, run_seconds, sweep_seconds : int
        How long a worker holds an audit without renewing, how long one wake-up works at most, and
        how often lost work is looked for.
    load_tokens, load_audits : int
        Most pair tokens and audits that are verified together.
    extraction_load_audits : int
        Most audits that an extraction worker claims at a time.
    max_attempts : int
        Attempts that may end in a lost worker or in the audit's own error before it fails.
    webhook_allowed_hosts : str
        Hosts, addresses and networks with commas between them, which webhooks may lead to although
        they are not public, over http too.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, extra="ignore", frozen=True, populate_by_name=True
    )

    profile: Profile = Profile.EMBEDDED
    policy: str | None = None
    extractor: ExtractorBackend = ExtractorBackend.LLAMA
    extractor_model: str | None = None
    extractor_mode: ExtractionMode = ExtractionMode.COVERED
    extractor_gpu_layers: int | None = Field(default=None, ge=-1, le=_MOST)
    extractor_context_tokens: int = Field(default=4096, ge=1024, le=_MOST)
    extractor_seconds: float = Field(default=600, gt=0, le=_DAY)
    nli: NliBackend | None = None
    nli_model: str | None = None
    nli_revision: str | None = None
    nli_labels: dict[str, str] | None = None
    nli_form: str = "fp32"
    nli_device: str = "auto"
    nli_dtype: str = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)
    token_budget: int = Field(default=DEFAULT_TOKEN_BUDGET, ge=512, le=_MOST)
    preselected_spans: int | None = Field(default=None, ge=1, le=_MOST)
    max_characters: int = Field(default=4_000_000, ge=1, le=_MOST)
    max_sentences: int = Field(default=50_000, ge=1, le=_MOST)

    home: Path = Field(default_factory=lambda: user_data_path("halldetect", appauthor=False))
    database_url: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("HALLDETECT_DATABASE_URL", "DATABASE_URL")
    )
    redis_url: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("HALLDETECT_REDIS_URL", "REDIS_URL")
    )
    api_url: str | None = None
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8000, ge=1, le=65535)
    flower_port: int = Field(default=5555, ge=1, le=65535)
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = Field(default=None, ge=1, le=65535)
    api_keys_required: bool | None = None
    api_key: SecretStr | None = None
    max_batch_lines: int = Field(default=1_000_000, ge=1, le=_MOST)
    max_upload_bytes: int = Field(default=4 * 2**30, ge=1, le=_MOST_BYTES)
    max_spooled_bytes: int | None = Field(default=None, ge=1, le=_MOST_BYTES)
    max_body_bytes: int = Field(default=16 * 2**20, ge=1, le=_MOST)
    max_waiting_audits: int = Field(default=2_000_000, ge=1, le=_MOST)
    max_waiting_audits_per_key: int | None = Field(default=None, ge=1, le=_MOST)
    requests_per_minute: int = Field(default=6000, ge=1, le=_MOST)
    stalled_client_seconds: int = Field(default=60, ge=1, le=_DAY)
    max_listed_errors: int = Field(default=100, ge=1, le=_MOST)
    lease_seconds: int = Field(default=60, ge=4, le=_DAY)
    run_seconds: int = Field(default=30, ge=1, le=_DAY)
    sweep_seconds: int = Field(default=10, ge=1, le=_DAY)
    load_tokens: int = Field(default=20_000, ge=1, le=_MOST)
    load_audits: int = Field(default=64, ge=1, le=_MOST)
    extraction_load_audits: int = Field(default=8, ge=1, le=_MOST)
    max_attempts: int = Field(default=3, ge=1, le=_MOST)
    webhook_allowed_hosts: str = ""

    @field_validator("webhook_allowed_hosts")
    @classmethod
    def _readable_targets(cls, text: str) -> str:
        try:
            AllowedTargets.parse(text)
        except InputError as error:
            raise ValueError(str(error)) from None
        return text

    @field_validator("max_spooled_bytes")
    @classmethod
    def _room_for_the_largest_upload(cls, size: int | None, info: ValidationInfo) -> int | None:
        largest = info.data.get("max_upload_bytes")
        if size is not None and largest is not None and size < largest:
            raise ValueError(
                f"is less than one upload may have: set it to {largest} or more, or lower "
                "HALLDETECT_MAX_UPLOAD_BYTES"
            )
        return size

    @property
    def spooled_bytes(self) -> int:
        """What all uploads in progress may have on the disk of an API process."""
        return self.max_spooled_bytes or _UPLOADS_AT_ONCE * self.max_upload_bytes

    @property
    def allowed_webhook_targets(self) -> AllowedTargets:
        """What webhooks may lead to beside public addresses over https."""
        return AllowedTargets.parse(self.webhook_allowed_hosts)

    @property
    def policy_name(self) -> str:
        """The chosen policy, or the profile's."""
        return self.policy or self.profile.value

    def asks_for_api_keys(self) -> bool:
        """Tell whether the API asks for API keys.

        Raises
        ------
        InputError
            It would let everybody in from other machines.
        """
        is_private = is_loopback(self.api_host)
        if self.api_keys_required is None:
            return not is_private
        if not self.api_keys_required and not is_private:
            raise InputError(
                f"the API would listen on {self.api_host!r} and ask nobody for a key: leave out "
                "HALLDETECT_API_KEYS_REQUIRED, or set HALLDETECT_API_HOST to 127.0.0.1"
            )
        return self.api_keys_required


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
            f"HALLDETECT_{'.'.join(str(part) for part in fault['loc']).upper()}: "
            f"{fault_message(fault)}"
            for fault in error.errors(include_url=False)
        ]
        raise InputError("; ".join(faults)) from None
