"""Probabilities of many pairs, each independent of the pairs it shares a batch with.

Phase III of arXiv 2608.05823: every (chunk, claim) pair goes through the NLI encoder as premise
and hypothesis, and all three probabilities are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from halldetect.errors import LimitError, VerificationError
from halldetect.nli.batching import (
    DEFAULT_TOKEN_BUDGET,
    BatchStatistics,
    Indices,
    batch_statistics,
    plan_batches,
)
from halldetect.nli.labels import NliLabel
from halldetect.nli.model import NliModel
from halldetect.nli.pair_tokenizer import TokenIds

Probabilities = NDArray[np.float32]


def pair_probabilities(
    model: NliModel,
    premises: Sequence[TokenIds],
    hypotheses: Sequence[TokenIds],
    pairs: NDArray[np.integer],
    token_budget: int = DEFAULT_TOKEN_BUDGET,
    *,
    on_batch: Callable[[BatchStatistics], None] | None = None,
) -> Probabilities:
    """Classify pairs of tokenized texts.

    Parameters
    ----------
    model : NliModel
        The encoder; its tokenizer must have made the ids.
    premises, hypotheses : sequence of int32 array (n_tokens,)
        Token ids without special tokens.
    pairs : integer array (n, 2)
        Rows of (index into `premises`, index into `hypotheses`), from 0 on.
    token_budget : int
        Most padded tokens in one forward pass.
    on_batch : callable, optional
        Called after every forward pass with what it computed; an exception from it ends the run.

    Returns
    -------
    float32 array (n, 3)
        P(entailment), P(neutral), P(contradiction) for every row of `pairs`, in its order.

    Raises
    ------
    LimitError
        When a pair has more tokens than the encoder reads; nothing is ever cut.
    VerificationError
        When the model returns another shape than asked for, or a number that is not finite.
        Both messages name the pair.
    IndexError
        When `pairs` points outside the texts.
    """
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if len(pairs) and int(pairs.min()) < 0:
        raise IndexError("pairs count from 0; a negative index would silently mean another text")
    lengths = _pair_lengths(model, premises, hypotheses, pairs)
    probabilities = np.empty((len(pairs), len(NliLabel)), dtype=np.float32)
    for batch in plan_batches(lengths, token_budget):
        chosen = pairs[batch]
        padded = model.tokenizer.assemble(
            [premises[index] for index in chosen[:, 0]],
            [hypotheses[index] for index in chosen[:, 1]],
        )
        logits = model.logits(padded)
        _check_logits(logits, batch, pairs)
        probabilities[batch] = softmax(logits)
        if on_batch is not None:
            on_batch(batch_statistics(lengths, [batch], token_budget))
    return probabilities


def softmax(logits: NDArray[np.floating]) -> Probabilities:
    """Turn logits into probabilities without overflow.

    Parameters
    ----------
    logits : float array (n, k)
        Finite scores.

    Returns
    -------
    float32 array (n, k)
        Rows that sum to 1.
    """
    shifted = np.asarray(logits, dtype=np.float64)
    powers = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    probabilities: Probabilities = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return probabilities


def _pair_lengths(
    model: NliModel,
    premises: Sequence[TokenIds],
    hypotheses: Sequence[TokenIds],
    pairs: NDArray[np.int64],
) -> NDArray[np.int64]:
    premise_lengths = np.array([len(ids) for ids in premises], dtype=np.int64)
    hypothesis_lengths = np.array([len(ids) for ids in hypotheses], dtype=np.int64)
    lengths = premise_lengths[pairs[:, 0]] + hypothesis_lengths[pairs[:, 1]]
    lengths += model.tokenizer.overhead
    too_long = np.flatnonzero(lengths > model.max_tokens)
    if len(too_long):
        row = int(too_long[0])
        raise LimitError(
            f"{_name(row, pairs)} has {lengths[row]} tokens with special tokens; "
            f"the NLI model {model.provenance.name} reads at most {model.max_tokens}"
        )
    return lengths


def _check_logits(logits: NDArray[np.float32], batch: Indices, pairs: NDArray[np.int64]) -> None:
    expected = (len(batch), len(NliLabel))
    if logits.shape != expected:
        raise VerificationError(
            f"the NLI model returned an array of shape {logits.shape} where {expected} was due, "
            f"in the batch that starts with {_name(int(batch[0]), pairs)}"
        )
    broken = np.flatnonzero(~np.isfinite(logits).all(axis=1))
    if len(broken):
        raise VerificationError(
            f"the NLI model returned a number that is not finite for "
            f"{_name(int(batch[broken[0]]), pairs)}"
        )


def _name(row: int, pairs: NDArray[np.int64]) -> str:
    premise, hypothesis = pairs[row]
    return f"pair {row} (premise {premise}, hypothesis {hypothesis})"
