"""Write a BERT sequence classifier as an ONNX graph, layer by layer.

Built by hand and not traced: batch and length stay free, padding is masked exactly as in the
checkpoint, and the weights stay where they are. The graph's tensors are *external data* that
points into ``model.safetensors`` of the same folder, so one weight file serves every backend and
the graph itself has a few kilobytes. Weights are stored in fp16 and widened to fp32 when the
graph is loaded; all arithmetic is fp32.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

WEIGHTS_FILE = "model.safetensors"
# Nothing below is newer: LayerNormalization is of opset 17, Gelu of 20.
OPSET = 20
IR_VERSION = 9
FUSED = "com.microsoft"  # ONNX Runtime's own operators
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# What BERT adds to the attention scores of padding; exp() of it is exactly zero.
MASKED = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies in the weight file."""

    shape: tuple[int, ...]
    offset: int
    length: int


class StoredWeights:
    """The table of contents of a safetensors file of fp16 tensors.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ValueError
        When a tensor is not fp16.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            (header_length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(header_length))
        header.pop("__metadata__", None)
        data_start = 8 + header_length
        self._tensors: dict[str, StoredTensor] = {}
        for name, entry in header.items():
            if entry["dtype"] != "F16":
                raise ValueError(f"{path}: tensor {name} is {entry['dtype']}, not F16")
            start, end = entry["data_offsets"]
            self._tensors[name] = StoredTensor(
                tuple(entry["shape"]), data_start + start, end - start
            )

    def find(self, name: str) -> StoredTensor:
        """Return where a tensor lies; KeyError names it when the file has none such."""
        return self._tensors[name]

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a tensor's values widened to fp32."""
        tensor = self.find(name)
        raw = np.fromfile(
            self.path, dtype=np.float16, count=tensor.length // 2, offset=tensor.offset
        )
        return raw.reshape(tensor.shape).astype(np.float32)


class GraphWriter:
    """Collects nodes and tensors of one graph.

    Parameters
    ----------
    weights : StoredWeights
        The weight file that tensors point into.
    """

    def __init__(self, weights: StoredWeights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: dict[str, onnx.TensorProto] = {}

    def add(
        self,
        operator: str,
        *inputs: str,
        domain: str = "",
        **attributes: int | float | list[int],
    ) -> str:
        """Append a node and return the name of its output."""
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(
                operator, list(inputs), [output], name=output, domain=domain, **attributes
            )
        )
        return output

    def constant(self, value: NDArray[Any]) -> str:
        """Store a value in the graph itself and return its name."""
        name = f"constant_{len(self.tensors)}"
        self.tensors[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def stored(self, name: str) -> str:
        """Refer to a tensor of the weight file (fp16) and return its name."""
        if name not in self.tensors:
            place = self.weights.find(name)
            tensor = TensorProto(
                name=name,
                data_type=TensorProto.FLOAT16,
                dims=place.shape,
                data_location=TensorProto.EXTERNAL,
            )
            where = {"location": WEIGHTS_FILE, "offset": place.offset, "length": place.length}
            for key, value in where.items():
                tensor.external_data.add(key=key, value=str(value))
            self.tensors[name] = tensor
        return name

    def widened(self, name: str) -> str:
        """Refer to a tensor of the weight file in fp32 (widened once, at load)."""
        return self.add("Cast", self.stored(name), to=TensorProto.FLOAT)

    def norm(self, value: str, name: str, epsilon: float) -> str:
        """Append a layer normalisation with stored scale and bias."""
        return self.add(
            "LayerNormalization",
            value,
            self.widened(f"{name}.weight"),
            self.widened(f"{name}.bias"),
            axis=-1,
            epsilon=epsilon,
        )

    def linear(self, value: str, name: str) -> str:
        """Append a stored linear layer."""
        product = self.add("MatMul", value, self.joined_weights(name))
        return self.add("Add", product, self.joined_biases(name))

    def attention(self, value: str, mask: str, layer: str, heads: int) -> str:
        """Append self-attention over a layer's query, key and value projections."""
        names = [f"{layer}.{name}" for name in ("query", "key", "value")]
        # ONNX Runtime's fused operator: the same sums as the plain chain of operators, measured
        # up to a fifth faster.
        return self.add(
            "Attention",
            value,
            self.joined_weights(*names),
            self.joined_biases(*names),
            mask,
            domain=FUSED,
            num_heads=heads,
            mask_filter_value=MASKED,
        )

    def joined_weights(self, *names: str) -> str:
        """Refer to the weights of several linear layers as one (inputs, outputs) matrix."""
        matrices = [
            self.add("Transpose", self.widened(f"{name}.weight"), perm=[1, 0]) for name in names
        ]
        return self.add("Concat", *matrices, axis=1) if len(matrices) > 1 else matrices[0]

    def joined_biases(self, *names: str) -> str:
        """Refer to the biases of several linear layers as one vector."""
        biases = [self.widened(f"{name}.bias") for name in names]
        return self.add("Concat", *biases, axis=0) if len(biases) > 1 else biases[0]


def build_bert_graph(folder: Path, writer_type: type[GraphWriter] = GraphWriter) -> onnx.ModelProto:
    """Build the graph of a BERT sequence classifier.

    Parameters
    ----------
    folder : Path
        Folder with ``config.json`` (model type ``bert``, absolute positions) and
        ``model.safetensors`` in fp16; the graph must be saved into the same folder.
    writer_type : type of GraphWriter
        How linear layers and attention are computed; fp32 by default.

    Returns
    -------
    onnx.ModelProto
        Inputs `INPUTS`, int64 (batch, length); output ``logits``, float32 (batch, labels).

    Raises
    ------
    ValueError
        When the checkpoint is no BERT classifier of the plain kind.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    _check_architecture(config)
    writer = writer_type(StoredWeights(folder / WEIGHTS_FILE))
    hidden = _embed(writer, config)
    mask = writer.add("Cast", "attention_mask", to=TensorProto.INT32)
    for layer in range(config["num_hidden_layers"]):
        hidden = _encode(writer, f"bert.encoder.layer.{layer}", hidden, mask, config)
    first = writer.add("Gather", hidden, writer.constant(np.array(0, np.int64)), axis=1)
    pooled = writer.add("Tanh", GraphWriter.linear(writer, first, "bert.pooler.dense"))
    # The two layers of the head are fp32 in every form: they cost nothing and decide everything.
    logits = GraphWriter.linear(writer, pooled, "classifier")
    writer.nodes.append(helper.make_node("Identity", [logits], ["logits"], name="logits"))
    return _assemble(writer, len(config["id2label"]))


def _check_architecture(config: dict[str, Any]) -> None:
    expected = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "is_decoder": False,
    }
    defaults = {"position_embedding_type": "absolute", "is_decoder": False}
    for key, value in expected.items():
        found = config.get(key, defaults.get(key))
        if found != value:
            raise ValueError(
                f"the checkpoint has {key} {found!r}; only {value!r} can be converted. Use the "
                "torch backend for other encoders"
            )


def _embed(writer: GraphWriter, config: dict[str, Any]) -> str:
    """Append word, type and position embeddings; tables stay in fp16, picked rows are widened."""
    tables = "bert.embeddings"

    def picked(table: str, ids: str) -> str:
        rows = writer.add("Gather", writer.stored(f"{tables}.{table}.weight"), ids)
        return writer.add("Cast", rows, to=TensorProto.FLOAT)

    zero = writer.constant(np.array([0], np.int64))
    length = writer.add("Shape", "input_ids", start=1, end=2)
    positions = writer.add(
        "Slice", writer.stored(f"{tables}.position_embeddings.weight"), zero, length, zero
    )
    words = picked("word_embeddings", "input_ids")
    types = picked("token_type_embeddings", "token_type_ids")
    total = writer.add(
        "Add",
        writer.add("Add", words, types),
        writer.add("Cast", positions, to=TensorProto.FLOAT),
    )
    return writer.norm(total, f"{tables}.LayerNorm", config["layer_norm_eps"])


def _encode(writer: GraphWriter, layer: str, hidden: str, mask: str, config: dict[str, Any]) -> str:
    """Append one transformer layer: attention, feed-forward, both with residual and norm."""
    epsilon = config["layer_norm_eps"]
    attended = writer.attention(
        hidden, mask, f"{layer}.attention.self", config["num_attention_heads"]
    )
    mixed = writer.linear(attended, f"{layer}.attention.output.dense")
    hidden = writer.norm(
        writer.add("Add", mixed, hidden), f"{layer}.attention.output.LayerNorm", epsilon
    )
    wide = writer.add("Gelu", writer.linear(hidden, f"{layer}.intermediate.dense"))
    narrow = writer.linear(wide, f"{layer}.output.dense")
    return writer.norm(writer.add("Add", narrow, hidden), f"{layer}.output.LayerNorm", epsilon)


def _assemble(writer: GraphWriter, labels: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        writer.nodes,
        "nli",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in INPUTS
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", labels])],
        list(writer.tensors.values()),
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)],
        ir_version=IR_VERSION,
        producer_name="halldetect",
    )
