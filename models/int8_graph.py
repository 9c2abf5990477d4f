"""The encoder's linear layers in int8, in a way that keeps a pair independent of its batch.

The usual dynamic quantisation takes one activation scale over the whole batch tensor, so that a
pair's probabilities change with its neighbours. Here every row (one token of one pair) has a scale
of its own, and integer sums are exact, so neighbours cannot matter. Weights have one scale an
output. Attention, norms and the head stay fp32.
"""

from __future__ import annotations

import numpy as np
from bert_graph import FUSED, MASKED, GraphWriter, StoredWeights
from numpy.typing import NDArray
from onnx import TensorProto

# Activations are stored as uint8 around this zero point: the pairing that CPUs multiply fastest.
ZERO_POINT = 128
STEPS = 127.0
# Keeps a row of zeros from dividing by zero.
SMALLEST_PEAK = 1e-9


class RowInt8Writer(GraphWriter):
    """Writes linear layers as int8 products with one activation scale a row."""

    def __init__(self, weights: StoredWeights) -> None:
        super().__init__(weights)
        self._quantised: dict[str, tuple[str, str]] = {}

    def attention(self, value: str, mask: str, layer: str, heads: int) -> str:
        """Append self-attention; its three projections share one quantised input."""
        projections = [self.linear(value, f"{layer}.{name}") for name in ("query", "key", "value")]
        return self.add(
            "MultiHeadAttention",
            *projections,
            "",
            mask,
            domain=FUSED,
            num_heads=heads,
            mask_filter_value=MASKED,
        )

    def linear(self, value: str, name: str) -> str:
        """Append a stored linear layer, quantised."""
        weights, scales = _quantise_outputs(self.weights.read(f"{name}.weight"))
        rows, row_scales = self._quantise_rows(value)
        product = self.add(
            "MatMulIntegerToFloat",
            rows,
            self.constant(weights),
            self.constant(np.array(1, np.float32)),
            self.constant(scales),
            self.constant(np.array(ZERO_POINT, np.uint8)),
            self.constant(np.array(0, np.int8)),
            domain=FUSED,
        )
        scaled = self.add("Mul", product, row_scales)
        return self.add("Add", scaled, self.joined_biases(name))

    def _quantise_rows(self, value: str) -> tuple[str, str]:
        """Return the uint8 form of a tensor and the scale of each of its rows."""
        if value not in self._quantised:
            last_axis = self.constant(np.array([-1], np.int64))
            peak = self.add("ReduceMax", self.add("Abs", value), last_axis, keepdims=1)
            peak = self.add("Max", peak, self.constant(np.array(SMALLEST_PEAK, np.float32)))
            steps = self.add("Div", self.constant(np.array(STEPS, np.float32)), peak)
            # The cast cuts off the fraction; the half added before makes that a rounding.
            shift = self.constant(np.array(ZERO_POINT + 0.5, np.float32))
            shifted = self.add("Add", self.add("Mul", value, steps), shift)
            rows = self.add("Cast", shifted, to=TensorProto.UINT8)
            self._quantised[value] = rows, self.add("Reciprocal", steps)
        return self._quantised[value]


def _quantise_outputs(
    weights: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise an (outputs, inputs) matrix; return it as (inputs, outputs) and its scales."""
    scales = np.maximum(np.abs(weights).max(axis=1), SMALLEST_PEAK) / STEPS
    quantised = np.round(weights / scales[:, None]).astype(np.int8)
    return np.ascontiguousarray(quantised.T), scales.astype(np.float32)
