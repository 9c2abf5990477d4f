"""NLI with torch and transformers: any 3-way sequence classifier, on the CPU or on CUDA."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from halldetect.errors import ModelError
from halldetect.nli.checkpoint import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    WeightsIdentity,
    check_digests,
    one_line,
    require_folder,
    weights_identity,
)
from halldetect.nli.classifier import Classifier, read_classifier
from halldetect.nli.hub import LocatedModel, locate_model
from halldetect.nli.pair_tokenizer import PaddedBatch
from halldetect.provenance import ModelProvenance

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

_log = logging.getLogger(__name__)


class TorchNliModel:
    """A 3-way NLI classifier run by torch.

    Parameters
    ----------
    folder : Path
        Where the checkpoint lies.
    network : transformers.PreTrainedModel
        The classifier, in evaluation mode on its device.
    classifier : Classifier
        How to read and write for it.
    provenance : ModelProvenance
        What to record with every audit.
    """

    def __init__(
        self,
        *,
        folder: Path,
        network: PreTrainedModel,
        classifier: Classifier,
        provenance: ModelProvenance,
    ) -> None:
        self._folder = folder
        self._network = network
        self._full_precision: PreTrainedModel | None = None
        self._columns = list(classifier.columns)
        # Encoders without a type table crash on type ids, or have just one row in it.
        self._takes_types = int(getattr(network.config, "type_vocab_size", 0) or 0) > 1
        self.tokenizer = classifier.tokenizer
        self.max_tokens = classifier.max_tokens
        self.provenance = provenance

    @classmethod
    def load(
        cls,
        location: str,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        may_download: bool = True,
        label_mapping: Mapping[str, str] | None = None,
    ) -> TorchNliModel:
        """Load a checkpoint; a local folder or a cached model never touches the network.

        Parameters
        ----------
        location : str
            A local folder, or the id of a model on the Hugging Face hub.
        revision : str, optional
            Commit, tag or branch of a hub model.
        device : str
            ``auto`` (CUDA where there is one), ``cpu``, ``cuda`` or ``cuda:1``.
        dtype : str
            ``auto`` (fp32 on the CPU, fp16 on CUDA), ``float32``, ``float16`` or ``bfloat16``.
        threads : int, optional
            Threads of the whole process for torch on the CPU; torch's own choice by default.
        may_download : bool
            Whether a hub model that is not in the cache may be fetched.
        label_mapping : mapping of str to str, optional
            See `halldetect.nli.labels.label_columns`.

        Returns
        -------
        TorchNliModel
            Ready for `logits`.

        Raises
        ------
        ModelError
            When the model cannot be found, is damaged, or is not a 3-way classifier of pairs.
        """
        if threads is not None:
            torch.set_num_threads(threads)
        place = torch.device(_choose_device(device))
        form = _choose_dtype(dtype, place)
        model = locate_model(location, revision, may_download=may_download)
        folder = model.folder
        require_folder(folder, (CONFIG_FILE, TOKENIZER_FILE))
        classifier = read_classifier(folder, label_mapping)
        identity = weights_identity(folder)
        check_digests(folder, identity.files)
        return cls(
            folder=folder,
            network=_open_network(folder, DTYPES[form], place),
            classifier=classifier,
            provenance=_provenance(model, identity, form, place),
        )

    def logits(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """Run the encoder once; see `halldetect.nli.model.NliModel.logits`.

        Half precision can overflow. A batch with a number that is not finite is computed once
        more in fp32; what is still not finite then is for the caller to refuse.

        Parameters
        ----------
        batch : PaddedBatch
            Pairs, none longer than `max_tokens`.

        Returns
        -------
        float32 array (n_pairs, 3)
            Entailment, neutral, contradiction.

        Raises
        ------
        ModelError
            When not even one pair fits the memory of the device.
        """
        logits = self._forward(self._network, batch)
        if self.provenance.dtype != "float32" and not np.isfinite(logits).all():
            _log.warning(
                "%s overflowed in %s; a batch of %d pairs runs again in float32",
                self.provenance.name,
                self.provenance.dtype,
                len(logits),
            )
            logits = self._forward(self._in_full_precision(), batch)
        return logits

    def _forward(self, network: PreTrainedModel, batch: PaddedBatch) -> NDArray[np.float32]:
        """Run a network over a batch, in smaller ones if the device's memory is too small."""
        try:
            return self._forward_at_once(network, batch)
        except torch.OutOfMemoryError as error:
            pairs, tokens = batch.input_ids.shape
            if pairs == 1:
                raise ModelError(
                    f"{self.provenance.name}: one pair of {tokens} tokens does not fit the memory "
                    f"of {self.provenance.device}: free some, or use another device"
                ) from error
        # Outside the handler, whose traceback holds on to the tensors.
        torch.cuda.empty_cache()
        _log.warning(
            "%s: %d pairs of %d tokens do not fit the memory of %s; they run in halves: "
            "set a smaller HALLDETECT_TOKEN_BUDGET",
            self.provenance.name,
            pairs,
            tokens,
            self.provenance.device,
        )
        return np.concatenate([self._forward(network, half) for half in batch.halves()])

    def _forward_at_once(self, network: PreTrainedModel, batch: PaddedBatch) -> NDArray[np.float32]:
        arrays = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if self._takes_types:
            arrays["token_type_ids"] = batch.token_type_ids
        with torch.inference_mode():
            inputs = {
                name: torch.from_numpy(array).to(network.device) for name, array in arrays.items()
            }
            output = network(**inputs).logits[:, self._columns]
        return np.asarray(output.float().cpu().numpy(), dtype=np.float32)

    def _in_full_precision(self) -> PreTrainedModel:
        """Load the checkpoint a second time in fp32, from the file and not from rounded weights."""
        if self._full_precision is None:
            self._full_precision = _open_network(self._folder, torch.float32, self._network.device)
        return self._full_precision


def _choose_device(device: str) -> str:
    if device == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise ModelError(
                f"device {device!r}: this torch ({torch.__version__}) sees no CUDA device; "
                "use cpu, or install a CUDA build of torch"
            )
        return "cuda:0" if device == "cuda" else device
    if device != "cpu":
        raise ModelError(f"unknown device {device!r}; use auto, cpu, cuda or cuda:N")
    return device


def _choose_dtype(dtype: str, device: torch.device) -> str:
    if dtype == "auto":
        return "float16" if device.type == "cuda" else "float32"
    if dtype not in DTYPES:
        raise ModelError(f"unknown dtype {dtype!r}; use auto, {', '.join(DTYPES)}")
    return dtype


def _open_network(folder: Path, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    try:
        with _quiet_loading():
            # A local folder: what the hub has was fetched at its revision before.
            network, report = transformers.AutoModelForSequenceClassification.from_pretrained(  # nosec B615
                str(folder),
                dtype=dtype,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except Exception as error:  # safetensors, transformers and torch share no base class
        raise ModelError(
            f"{folder}: transformers cannot load it: {one_line(error)}; "
            "fetch or convert the model again"
        ) from error
    _check_complete(folder, report)
    loaded: PreTrainedModel = network.to(device).eval()
    return loaded


def _check_complete(folder: Path, report: Mapping[str, Any]) -> None:
    """Refuse a checkpoint whose weights transformers had to make up at random."""
    lacking = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if lacking:
        raise ModelError(
            f"{folder}: the checkpoint has no weights for {', '.join(lacking[:5])}"
            f"{' and more' if len(lacking) > 5 else ''}; choose a model fine-tuned for 3-way NLI"
        )


def _provenance(
    model: LocatedModel, identity: WeightsIdentity, dtype: str, device: torch.device
) -> ModelProvenance:
    return ModelProvenance(
        name=model.name,
        backend="torch",
        revision=model.commit or f"sha256:{identity.sha256}",
        dtype=dtype,
        device=str(device),
        libraries={name: version(name) for name in ("torch", "transformers", "tokenizers")},
    )


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """Keep the progress bar of transformers out of this project's output."""
    logging_of = transformers.utils.logging
    shown = logging_of.is_progress_bar_enabled()
    logging_of.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging_of.enable_progress_bar()
