"""NLI with ONNX Runtime: the CPU default, without torch or transformers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Official builds of ONNX Runtime report to Microsoft and keep a device identifier in the user's
# cache, from native code and from the moment they are imported. An audit reports to nobody.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

from halldetect.errors import ModelError
from halldetect.nli.checkpoint import (
    CONFIG_FILE,
    ONNX_FORMS,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    check_digests,
    file_digest,
    one_line,
    require_folder,
)
from halldetect.nli.classifier import Classifier, read_classifier
from halldetect.nli.labels import NliLabel
from halldetect.nli.pair_tokenizer import PaddedBatch
from halldetect.provenance import ModelProvenance


class OnnxNliModel:
    """A 3-way NLI classifier run by ONNX Runtime on the CPU.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        The loaded graph: inputs ``input_ids``, ``attention_mask`` and, if the encoder takes them,
        ``token_type_ids``; one output of shape (batch, 3).
    classifier : Classifier
        How to read and write for it.
    provenance : ModelProvenance
        What to record with every audit.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        classifier: Classifier,
        provenance: ModelProvenance,
    ) -> None:
        self._session = session
        self._columns = list(classifier.columns)
        self._inputs = {value.name for value in session.get_inputs()}
        self._output = session.get_outputs()[0].name
        self.tokenizer = classifier.tokenizer
        self.max_tokens = classifier.max_tokens
        self.provenance = provenance

    @classmethod
    def load(
        cls,
        folder: Path,
        form: str = "fp32",
        threads: int | None = None,
        label_mapping: Mapping[str, str] | None = None,
    ) -> OnnxNliModel:
        """Load a model folder; nothing outside it is read and no network is touched.

        Parameters
        ----------
        folder : Path
            Folder with ``config.json``, ``tokenizer.json`` and the graph of the form.
        form : str
            ``fp32``, or ``int8`` where the folder has it.
        threads : int, optional
            Threads of one forward pass; by default one a physical core.
        label_mapping : mapping of str to str, optional
            See `halldetect.nli.labels.label_columns`.

        Returns
        -------
        OnnxNliModel
            Ready for `logits`.

        Raises
        ------
        ModelError
            When a file is missing, damaged or not a 3-way classifier of pairs.
        """
        if form not in ONNX_FORMS:
            raise ModelError(f"unknown ONNX form {form!r}; choose {' or '.join(ONNX_FORMS)}")
        graph_file, dtype = ONNX_FORMS[form]
        require_folder(folder, (CONFIG_FILE, TOKENIZER_FILE, graph_file))
        classifier = read_classifier(folder, label_mapping)
        # The bundled graphs hold no weights of their own: they point into the checkpoint.
        weights = tuple(name for name in (WEIGHTS_FILE,) if (folder / name).is_file())
        check_digests(folder, (graph_file, *weights))
        session = _open_session(folder / graph_file, threads)
        return cls(session, classifier, _provenance(folder, graph_file, dtype))

    def logits(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """Run the encoder once; see `halldetect.nli.model.NliModel.logits`.

        Parameters
        ----------
        batch : PaddedBatch
            Pairs, none longer than `max_tokens`.

        Returns
        -------
        float32 array (n_pairs, 3)
            Entailment, neutral, contradiction.
        """
        offered = {
            "input_ids": batch.input_ids,
            "attention_mask": batch.attention_mask,
            "token_type_ids": batch.token_type_ids,
        }
        feeds = {name: array for name, array in offered.items() if name in self._inputs}
        output = self._session.run([self._output], feeds)[0]
        return np.asarray(output[:, self._columns], dtype=np.float32)


def _open_session(path: Path, threads: int | None) -> onnxruntime.InferenceSession:
    onnxruntime.disable_telemetry_events()  # it may have been imported before this module
    options = onnxruntime.SessionOptions()
    # Threads that spin while they wait for work take the cores from whatever shares them (the
    # extraction worker). Without, two threads did a fifth more tokens per second of CPU.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # errors reach the caller as exceptions, not on stderr
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the library's own errors share no base but Exception
        raise ModelError(
            f"{path}: ONNX Runtime cannot load it: {one_line(error)}; "
            "fetch or convert the model again"
        ) from error
    _check_graph(path, session)
    return session


def _check_graph(path: Path, session: onnxruntime.InferenceSession) -> None:
    inputs = {value.name for value in session.get_inputs()}
    known = {"input_ids", "attention_mask", "token_type_ids"}
    if not {"input_ids", "attention_mask"} <= inputs <= known:
        raise ModelError(
            f"{path}: has the inputs {', '.join(sorted(inputs))}, but a pair classifier takes "
            "input_ids, attention_mask and perhaps token_type_ids"
        )
    shape: list[Any] = session.get_outputs()[0].shape
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != len(NliLabel)):
        raise ModelError(
            f"{path}: its first output has the shape {shape}, not (batch, {len(NliLabel)}); "
            "choose a 3-way classifier"
        )


def _provenance(folder: Path, graph_file: str, dtype: str) -> ModelProvenance:
    weights = folder / WEIGHTS_FILE
    identity = weights if weights.is_file() else folder / graph_file
    return ModelProvenance(
        name=f"{folder.name}/{graph_file}",
        backend="onnx",
        revision=f"sha256:{file_digest(identity)}",
        dtype=dtype,
        device="cpu",
        libraries={
            "onnxruntime": onnxruntime.__version__,
            "tokenizers": version("tokenizers"),
        },
    )
